-- Which companies did what for the best films?
select
    min(cn.name) as company,
    min(mi_idx.info) as rating,
    min(t.title) as title
from
    title as t,
    movie_info as mi,
    info_type as it1,
    movie_info_idx as mi_idx,
    info_type as it2,
    movie_companies as mc,
    company_name as cn,
    company_type as ct
where
    t.id = mi.movie_id
    and t.id = mi_idx.movie_id
    and t.id = mc.movie_id
    and mi.movie_id = mi_idx.movie_id
    and mi_idx.movie_id = mc.movie_id
    and mi.movie_id = mc.movie_id
    and mc.company_id = cn.id
    and mc.company_type_id = ct.id
    and mi.info_type_id = it1.id
    and mi_idx.info_type_id = it2.id
    and cn.country_code = '[us]'
    and ct.kind in ('production companies', 'distributors')
    and it1.info = 'budget'
    and it2.info = 'top 250 rank'
    and t.production_year > 2000;
