-- Which films with a rare keyword are linked?
select
    min(lt.link) as link,
    min(t.title) as first,
    min(t2.title) as second
from
    title as t,
    movie_keyword as mk,
    keyword as k,
    movie_link as ml,
    link_type as lt,
    title as t2
where
    t.id = mk.movie_id
    and t.id = ml.movie_id
    and mk.movie_id = ml.movie_id
    and mk.keyword_id = k.id
    and ml.link_type_id = lt.id
    and ml.linked_movie_id = t2.id
    and k.keyword = 'cowboy';
