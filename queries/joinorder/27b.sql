-- Which company produced complete films of 1998 and later that follow, in English?
select
    min(cn.name) as company,
    min(lt.link) as link,
    min(t.title) as title
from
    title as t,
    movie_info as mi,
    movie_keyword as mk,
    keyword as k,
    movie_link as ml,
    link_type as lt,
    movie_companies as mc,
    company_name as cn,
    company_type as ct,
    complete_cast as cc,
    comp_cast_type as cct1,
    comp_cast_type as cct2
where
    t.id = mi.movie_id
    and t.id = mk.movie_id
    and t.id = ml.movie_id
    and t.id = mc.movie_id
    and t.id = cc.movie_id
    and mi.movie_id = mk.movie_id
    and mk.movie_id = ml.movie_id
    and ml.movie_id = mc.movie_id
    and mc.movie_id = cc.movie_id
    and mi.movie_id = cc.movie_id
    and mk.keyword_id = k.id
    and mc.company_id = cn.id
    and mc.company_type_id = ct.id
    and ml.link_type_id = lt.id
    and cc.subject_id = cct1.id
    and cc.status_id = cct2.id
    and cct2.kind like 'complete%'
    and cn.country_code <> '[pl]'
    and ct.kind = 'production companies'
    and lt.link like '%follow%'
    and cct1.kind in ('cast', 'crew')
    and mi.info in ('English', 'USA')
    and t.production_year > 1998;
