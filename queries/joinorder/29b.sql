-- Whose height goes with a voice in a complete cartoon?
select
    min(chn.name) as character,
    min(n.name) as voice,
    min(t.title) as title
from
    title as t,
    movie_info as mi,
    info_type as it1,
    movie_keyword as mk,
    keyword as k,
    cast_info as ci,
    name as n,
    aka_name as an,
    char_name as chn,
    role_type as rt,
    person_info as pi,
    info_type as it3,
    movie_companies as mc,
    company_name as cn,
    complete_cast as cc,
    comp_cast_type as cct1,
    comp_cast_type as cct2
where
    t.id = mi.movie_id
    and t.id = mk.movie_id
    and t.id = ci.movie_id
    and t.id = mc.movie_id
    and t.id = cc.movie_id
    and mi.movie_id = mk.movie_id
    and mk.movie_id = ci.movie_id
    and ci.movie_id = mc.movie_id
    and mc.movie_id = cc.movie_id
    and mi.movie_id = cc.movie_id
    and mk.keyword_id = k.id
    and mc.company_id = cn.id
    and ci.person_id = n.id
    and ci.person_role_id = chn.id
    and ci.role_id = rt.id
    and cc.subject_id = cct1.id
    and cc.status_id = cct2.id
    and mi.info_type_id = it1.id
    and pi.info_type_id = it3.id
    and n.id = an.person_id
    and ci.person_id = an.person_id
    and n.id = pi.person_id
    and ci.person_id = pi.person_id
    and an.person_id = pi.person_id
    and cct1.kind = 'cast'
    and cct2.kind like '%complete%'
    and cn.country_code = '[us]'
    and it1.info in ('release dates', 'countries', 'genres')
    and rt.role in ('actress', 'actor')
    and ci.note in ('(voice)', '(voice) (uncredited)', '(voice: English version)')
    and it3.info = 'height'
    and n.gender = 'f'
    and t.production_year > 1990;
