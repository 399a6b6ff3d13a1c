-- Which actress called Maria speaks in films after 2000?
select
    min(n.name) as voice,
    min(t.title) as title
from
    title as t,
    movie_info as mi,
    info_type as it1,
    cast_info as ci,
    name as n,
    aka_name as an,
    char_name as chn,
    role_type as rt,
    movie_companies as mc,
    company_name as cn
where
    t.id = mi.movie_id
    and t.id = ci.movie_id
    and t.id = mc.movie_id
    and mi.movie_id = ci.movie_id
    and ci.movie_id = mc.movie_id
    and mi.movie_id = mc.movie_id
    and mc.company_id = cn.id
    and ci.person_id = n.id
    and ci.person_role_id = chn.id
    and ci.role_id = rt.id
    and mi.info_type_id = it1.id
    and n.id = an.person_id
    and ci.person_id = an.person_id
    and cn.country_code = '[us]'
    and it1.info = 'release dates'
    and ci.note in ('(voice)', '(voice) (uncredited)', '(voice: English version)')
    and n.gender = 'f'
    and rt.role = 'actress'
    and n.name like '%Maria%'
    and mi.info like '%:%20%'
    and t.production_year > 2000;
