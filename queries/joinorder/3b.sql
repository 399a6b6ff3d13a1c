-- Which film in Bulgarian came after 2010?
select
    min(t.title) as title,
    count(*) as films
from
    title as t,
    movie_info as mi,
    movie_keyword as mk,
    keyword as k
where
    t.id = mi.movie_id
    and t.id = mk.movie_id
    and mi.movie_id = mk.movie_id
    and mk.keyword_id = k.id
    and k.keyword like '%s%'
    and mi.info = 'Bulgarian'
    and t.production_year > 2010;
