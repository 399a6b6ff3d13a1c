-- Which foreign dark film or episode is rated below 8.5?
select
    min(cn.name) as company,
    min(mi_idx.info) as rating,
    min(t.title) as title
from
    title as t,
    kind_type as kt,
    movie_info as mi,
    info_type as it1,
    movie_info_idx as mi_idx,
    info_type as it2,
    movie_keyword as mk,
    keyword as k,
    movie_companies as mc,
    company_name as cn,
    company_type as ct
where
    t.id = mi.movie_id
    and t.id = mi_idx.movie_id
    and t.id = mk.movie_id
    and t.id = mc.movie_id
    and mi.movie_id = mi_idx.movie_id
    and mi_idx.movie_id = mk.movie_id
    and mk.movie_id = mc.movie_id
    and mi.movie_id = mc.movie_id
    and t.kind_id = kt.id
    and mk.keyword_id = k.id
    and mc.company_id = cn.id
    and mc.company_type_id = ct.id
    and mi.info_type_id = it1.id
    and mi_idx.info_type_id = it2.id
    and cn.country_code <> '[us]'
    and it1.info = 'countries'
    and it2.info = 'rating'
    and k.keyword in ('murder', 'blood', 'police', 'revenge')
    and kt.kind in ('movie', 'episode')
    and mc.note like '%(20%)%'
    and mi.info in ('Germany', 'France', 'UK', 'USA', 'Sweden', 'India')
    and mi_idx.info < '8.5'
    and t.production_year > 2005;
