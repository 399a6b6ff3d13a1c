-- Which film in a rare language has a theatrical note of France?
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
    and mc.note like '%(theatrical)%'
    and mc.note like '%(France)%'
    and mi.info in ('French', 'German', 'Greek', 'Polish')
    and t.production_year > 2000;
