-- Which men wrote complete films of violence?
select
    min(mi.info) as genre,
    min(mi_idx.info) as votes,
    min(n.name) as writer,
    min(t.title) as title
from
    title as t,
    movie_info as mi,
    info_type as it1,
    movie_info_idx as mi_idx,
    info_type as it2,
    movie_keyword as mk,
    keyword as k,
    cast_info as ci,
    name as n,
    complete_cast as cc,
    comp_cast_type as cct1,
    comp_cast_type as cct2
where
    t.id = mi.movie_id
    and t.id = mi_idx.movie_id
    and t.id = mk.movie_id
    and t.id = ci.movie_id
    and t.id = cc.movie_id
    and mi.movie_id = mi_idx.movie_id
    and mi_idx.movie_id = mk.movie_id
    and mk.movie_id = ci.movie_id
    and ci.movie_id = cc.movie_id
    and mi.movie_id = cc.movie_id
    and mk.keyword_id = k.id
    and ci.person_id = n.id
    and cc.subject_id = cct1.id
    and cc.status_id = cct2.id
    and mi.info_type_id = it1.id
    and mi_idx.info_type_id = it2.id
    and cct1.kind in ('cast', 'crew')
    and cct2.kind like 'complete%'
    and it1.info = 'genres'
    and it2.info = 'votes'
    and ci.note in ('(writer)', '(head writer)', '(written by)', '(story)', '(screenplay)')
    and n.gender = 'm'
    and k.keyword in ('murder', 'blood', 'ghost', 'death', 'fight', 'love')
    and mi.info in ('Horror', 'Action', 'Sci-Fi', 'Thriller', 'Crime', 'War', 'Drama');
