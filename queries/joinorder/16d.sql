-- Whose other name goes with episodes 2 to 20?
select
    min(an.name) as alias,
    min(t.title) as title
from
    title as t,
    movie_keyword as mk,
    keyword as k,
    movie_companies as mc,
    company_name as cn,
    cast_info as ci,
    name as n,
    aka_name as an
where
    t.id = mk.movie_id
    and t.id = mc.movie_id
    and t.id = ci.movie_id
    and mk.movie_id = mc.movie_id
    and mc.movie_id = ci.movie_id
    and mk.movie_id = ci.movie_id
    and mk.keyword_id = k.id
    and mc.company_id = cn.id
    and ci.person_id = n.id
    and n.id = an.person_id
    and ci.person_id = an.person_id
    and cn.country_code = '[us]'
    and k.keyword = 'based-on-novel'
    and t.episode_nr >= 2
    and t.episode_nr < 20;
