-- What are genre and votes of what men wrote?
select
    min(mi.info) as first,
    min(mi_idx.info) as votes,
    min(t.title) as title
from
    title as t,
    movie_info as mi,
    info_type as it1,
    movie_info_idx as mi_idx,
    info_type as it2,
    cast_info as ci,
    name as n
where
    t.id = mi.movie_id
    and t.id = mi_idx.movie_id
    and t.id = ci.movie_id
    and mi.movie_id = mi_idx.movie_id
    and mi_idx.movie_id = ci.movie_id
    and mi.movie_id = ci.movie_id
    and ci.person_id = n.id
    and mi.info_type_id = it1.id
    and mi_idx.info_type_id = it2.id
    and it2.info = 'votes'
    and it1.info = 'genres'
    and mi.info in ('Horror', 'Action', 'Sci-Fi', 'Thriller', 'Crime', 'War')
    and ci.note in ('(writer)', '(head writer)', '(written by)', '(story)', '(screenplay)')
    and n.gender = 'm';
