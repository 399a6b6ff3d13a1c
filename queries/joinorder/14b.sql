-- Which film of murder in its title is rated above 6?
select
    min(mi_idx.info) as rating,
    min(t.title) as title
from
    title as t,
    kind_type as kt,
    movie_info as mi,
    info_type as it1,
    movie_info_idx as mi_idx,
    info_type as it2,
    movie_keyword as mk,
    keyword as k
where
    t.id = mi.movie_id
    and t.id = mi_idx.movie_id
    and t.id = mk.movie_id
    and mi.movie_id = mi_idx.movie_id
    and mi_idx.movie_id = mk.movie_id
    and mi.movie_id = mk.movie_id
    and t.kind_id = kt.id
    and mk.keyword_id = k.id
    and mi.info_type_id = it1.id
    and mi_idx.info_type_id = it2.id
    and it1.info = 'countries'
    and it2.info = 'rating'
    and k.keyword in ('murder', 'blood')
    and kt.kind = 'movie'
    and mi.info in ('Sweden', 'Norway', 'Germany', 'Denmark', 'USA')
    and mi_idx.info > '6.0'
    and (t.title like '%Murder%' or t.title like '%Night%')
    and t.production_year > 2000;
