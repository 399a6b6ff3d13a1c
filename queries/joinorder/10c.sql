-- Which characters are in American films after 1990?
select
    min(chn.name) as character,
    min(t.title) as title
from
    title as t,
    cast_info as ci,
    char_name as chn,
    role_type as rt,
    movie_companies as mc,
    company_name as cn,
    company_type as ct
where
    t.id = ci.movie_id
    and t.id = mc.movie_id
    and ci.movie_id = mc.movie_id
    and mc.company_id = cn.id
    and mc.company_type_id = ct.id
    and ci.person_role_id = chn.id
    and ci.role_id = rt.id
    and ci.note like '%(voice)%'
    and cn.country_code = '[us]'
    and t.production_year > 1990;
