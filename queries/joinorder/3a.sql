-- Which film of one of the northern languages came after 2005?
select
    min(t.title) as title,
    count(*) as films
from
    title as t,
    movie_info as mi,
    movie_keyword as mk,
    keyword as k
where
    t.id = mi.movie_id
    and t.id = mk.movie_id
    and mi.movie_id = mk.movie_id
    and mk.keyword_id = k.id
    and k.keyword like '%s%'
    and mi.info in ('Swedish', 'Norwegian', 'Danish', 'Finnish', 'German')
    and t.production_year > 2005;
