-- Which complete film of heroes has a captain played by Downey?
select
    min(t.title) as title
from
    title as t,
    kind_type as kt,
    movie_keyword as mk,
    keyword as k,
    cast_info as ci,
    name as n,
    char_name as chn,
    complete_cast as cc,
    comp_cast_type as cct1,
    comp_cast_type as cct2
where
    t.id = mk.movie_id
    and t.id = ci.movie_id
    and t.id = cc.movie_id
    and mk.movie_id = ci.movie_id
    and ci.movie_id = cc.movie_id
    and mk.movie_id = cc.movie_id
    and t.kind_id = kt.id
    and mk.keyword_id = k.id
    and ci.person_id = n.id
    and ci.person_role_id = chn.id
    and cc.subject_id = cct1.id
    and cc.status_id = cct2.id
    and kt.kind = 'movie'
    and cct1.kind = 'cast'
    and cct2.kind like '%complete%'
    and chn.name like 'Captain%'
    and k.keyword in ('superhero', 'sequel', 'hero', 'revenge', 'magic', 'fight')
    and n.name like '%Downey%'
    and t.production_year > 2000;
