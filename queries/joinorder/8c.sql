-- Which writers of American films have other names?
select
    min(an.name) as alias,
    min(t.title) as title
from
    title as t,
    cast_info as ci,
    name as n,
    aka_name as an,
    role_type as rt,
    movie_companies as mc,
    company_name as cn
where
    t.id = ci.movie_id
    and t.id = mc.movie_id
    and ci.movie_id = mc.movie_id
    and mc.company_id = cn.id
    and ci.person_id = n.id
    and ci.role_id = rt.id
    and n.id = an.person_id
    and ci.person_id = an.person_id
    and cn.country_code = '[us]'
    and rt.role = 'writer';
