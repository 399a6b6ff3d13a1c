-- Which foreign dark film with a crew is rated above 6.5?
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
    company_type as ct,
    complete_cast as cc,
    comp_cast_type as cct1,
    comp_cast_type as cct2
where
    t.id = mi.movie_id
    and t.id = mi_idx.movie_id
    and t.id = mk.movie_id
    and t.id = mc.movie_id
    and t.id = cc.movie_id
    and mi.movie_id = mi_idx.movie_id
    and mi_idx.movie_id = mk.movie_id
    and mk.movie_id = mc.movie_id
    and mc.movie_id = cc.movie_id
    and mi.movie_id = cc.movie_id
    and t.kind_id = kt.id
    and mk.keyword_id = k.id
    and mc.company_id = cn.id
    and mc.company_type_id = ct.id
    and cc.subject_id = cct1.id
    and cc.status_id = cct2.id
    and mi.info_type_id = it1.id
    and mi_idx.info_type_id = it2.id
    and cn.country_code <> '[us]'
    and it1.info = 'countries'
    and it2.info = 'rating'
    and k.keyword in ('murder', 'blood', 'police', 'revenge', 'love')
    and kt.kind in ('movie', 'episode')
    and cct1.kind = 'crew'
    and mi.info in ('Germany', 'France', 'UK', 'Sweden')
    and mi_idx.info > '6.5'
    and t.production_year > 2000;
