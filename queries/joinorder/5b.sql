-- Which American film came out on video cassettes?
select
    min(t.title) as title
from
    title as t,
    movie_info as mi,
    info_type as it,
    movie_companies as mc,
    company_type as ct
where
    t.id = mi.movie_id
    and t.id = mc.movie_id
    and mi.movie_id = mc.movie_id
    and mc.company_type_id = ct.id
    and mi.info_type_id = it.id
    and ct.kind = 'production companies'
    and mc.note like '%(VHS)%'
    and mc.note like '%(USA)%'
    and mi.info in ('USA', 'English')
    and t.production_year > 1985;
