-- What is the lowest rating of a sequel above 5?
select
    min(mi_idx.info) as rating,
    min(t.title) as title
from
    title as t,
    movie_info_idx as mi_idx,
    info_type as it,
    movie_keyword as mk,
    keyword as k
where
    t.id = mi_idx.movie_id
    and t.id = mk.movie_id
    and mi_idx.movie_id = mk.movie_id
    and mk.keyword_id = k.id
    and mi_idx.info_type_id = it.id
    and it.info = 'rating'
    and k.keyword like '%sequel%'
    and mi_idx.info > '5.0'
    and t.production_year > 2005;
