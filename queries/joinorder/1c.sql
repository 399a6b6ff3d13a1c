-- Which top film of 1990 to 2015 has a note that is not of television?
select
    min(mc.note) as company_note,
    min(t.title) as title,
    min(t.production_year) as year
from
    title as t,
    movie_info_idx as mi_idx,
    info_type as it,
    movie_companies as mc,
    company_type as ct
where
    t.id = mi_idx.movie_id
    and t.id = mc.movie_id
    and mi_idx.movie_id = mc.movie_id
    and mc.company_type_id = ct.id
    and mi_idx.info_type_id = it.id
    and ct.kind = 'production companies'
    and it.info = 'top 250 rank'
    and mc.note not like '%(TV)%'
    and t.production_year between 1990 and 2015;
