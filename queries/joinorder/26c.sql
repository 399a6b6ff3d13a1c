-- Which character is in a complete film rated at all?
select
    min(chn.name) as character,
    min(mi_idx.info) as rating,
    min(t.title) as title
from
    title as t,
    kind_type as kt,
    movie_info_idx as mi_idx,
    info_type as it2,
    movie_keyword as mk,
    keyword as k,
    cast_info as ci,
    name as n,
    char_name as chn,
    complete_cast as cc,
    comp_cast_type as cct1,
    comp_cast_type as cct2
where
    t.id = mi_idx.movie_id
    and t.id = mk.movie_id
    and t.id = ci.movie_id
    and t.id = cc.movie_id
    and mi_idx.movie_id = mk.movie_id
    and mk.movie_id = ci.movie_id
    and ci.movie_id = cc.movie_id
    and mi_idx.movie_id = cc.movie_id
    and t.kind_id = kt.id
    and mk.keyword_id = k.id
    and ci.person_id = n.id
    and ci.person_role_id = chn.id
    and cc.subject_id = cct1.id
    and cc.status_id = cct2.id
    and mi_idx.info_type_id = it2.id
    and cct1.kind = 'cast'
    and cct2.kind like '%complete%'
    and it2.info = 'rating'
    and kt.kind = 'movie'
    and chn.name is not null
    and k.keyword in ('superhero', 'hero', 'magic', 'fight', 'blood', 'sequel', 'revenge')
    and t.production_year > 2000;
