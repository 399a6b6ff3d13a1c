-- Which men wrote horror for a company called S?
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
    movie_companies as mc,
    company_name as cn
where
    t.id = mi.movie_id
    and t.id = mi_idx.movie_id
    and t.id = mk.movie_id
    and t.id = ci.movie_id
    and t.id = mc.movie_id
    and mi.movie_id = mi_idx.movie_id
    and mi_idx.movie_id = mk.movie_id
    and mk.movie_id = ci.movie_id
    and ci.movie_id = mc.movie_id
    and mi.movie_id = mc.movie_id
    and mk.keyword_id = k.id
    and mc.company_id = cn.id
    and ci.person_id = n.id
    and mi.info_type_id = it1.id
    and mi_idx.info_type_id = it2.id
    and it1.info = 'genres'
    and it2.info = 'votes'
    and ci.note in ('(writer)', '(head writer)', '(written by)', '(story)', '(screenplay)')
    and cn.name like 'S%'
    and k.keyword in ('murder', 'blood', 'ghost', 'death', 'fight')
    and mi.info in ('Horror', 'Thriller')
    and n.gender = 'm';
