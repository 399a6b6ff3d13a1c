-- Which film with a known cast came out in the USA after 2000?
select
    min(kt.kind) as kind,
    min(t.title) as title
from
    title as t,
    kind_type as kt,
    movie_info as mi,
    info_type as it1,
    movie_keyword as mk,
    keyword as k,
    movie_companies as mc,
    company_name as cn,
    company_type as ct,
    complete_cast as cc,
    comp_cast_type as cct1
where
    t.id = mi.movie_id
    and t.id = mk.movie_id
    and t.id = mc.movie_id
    and t.id = cc.movie_id
    and mi.movie_id = mk.movie_id
    and mk.movie_id = mc.movie_id
    and mc.movie_id = cc.movie_id
    and mi.movie_id = cc.movie_id
    and t.kind_id = kt.id
    and mk.keyword_id = k.id
    and mc.company_id = cn.id
    and mc.company_type_id = ct.id
    and cc.subject_id = cct1.id
    and mi.info_type_id = it1.id
    and cct1.kind = 'cast'
    and cn.country_code = '[us]'
    and it1.info = 'release dates'
    and mi.note like '%internet%'
    and kt.kind = 'movie'
    and mi.info like 'USA:%'
    and t.production_year > 2000;
