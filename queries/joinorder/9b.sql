-- Whom with Martin in her name does one hear in films of 1990 to 2019?
select
    min(an.name) as alias,
    min(chn.name) as character,
    min(t.title) as title
from
    title as t,
    cast_info as ci,
    name as n,
    aka_name as an,
    char_name as chn,
    role_type as rt,
    movie_companies as mc,
    company_name as cn
where
    t.id = ci.movie_id
    and t.id = mc.movie_id
    and ci.movie_id = mc.movie_id
    and mc.company_id = cn.id
    and ci.person_id = n.id
    and ci.person_role_id = chn.id
    and ci.role_id = rt.id
    and n.id = an.person_id
    and ci.person_id = an.person_id
    and cn.country_code = '[us]'
    and rt.role = 'actress'
    and n.gender = 'f'
    and ci.note in ('(voice)', '(voice) (uncredited)', '(voice: English version)')
    and n.name like '%Martin%'
    and t.production_year between 1990 and 2019;
