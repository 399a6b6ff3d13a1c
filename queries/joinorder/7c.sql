-- Whose biography goes with films that refer to others?
select
    min(n.name) as person,
    min(t.title) as title
from
    title as t,
    cast_info as ci,
    name as n,
    aka_name as an,
    person_info as pi,
    info_type as it,
    movie_link as ml,
    link_type as lt
where
    t.id = ci.movie_id
    and t.id = ml.movie_id
    and ci.movie_id = ml.movie_id
    and ci.person_id = n.id
    and ml.link_type_id = lt.id
    and pi.info_type_id = it.id
    and n.id = an.person_id
    and ci.person_id = an.person_id
    and n.id = pi.person_id
    and ci.person_id = pi.person_id
    and an.person_id = pi.person_id
    and it.info = 'mini biography'
    and lt.link in ('references', 'referenced in', 'features', 'featured in')
    and pi.note is not null
    and (n.gender = 'm' or (n.gender = 'f' and n.name like 'A%'))
    and t.production_year between 1980 and 2015;
