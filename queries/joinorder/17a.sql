-- Who with a name in B is in American films after a novel?
select
    min(n.name) as person,
    count(*) as parts
from
    title as t,
    movie_keyword as mk,
    keyword as k,
    movie_companies as mc,
    company_name as cn,
    cast_info as ci,
    name as n
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
    and cn.country_code = '[us]'
    and k.keyword = 'based-on-novel'
    and n.name like 'B%';
