-- Who called Downey is in films with one of some keywords after 2014?
select
    min(k.keyword) as keyword,
    min(n.name) as person,
    min(t.title) as title
from
    title as t,
    movie_keyword as mk,
    keyword as k,
    cast_info as ci,
    name as n
where
    t.id = mk.movie_id
    and t.id = ci.movie_id
    and mk.movie_id = ci.movie_id
    and mk.keyword_id = k.id
    and ci.person_id = n.id
    and k.keyword in ('superhero', 'sequel', 'hero', 'revenge', 'fight', 'blood')
    and n.name like '%Downey%'
    and t.production_year > 2014;
