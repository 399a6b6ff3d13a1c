-- Which film of a company of jp has a keyword of cartoon?
select
    min(t.title) as title
from
    title as t,
    movie_companies as mc,
    company_name as cn,
    movie_keyword as mk,
    keyword as k
where
    t.id = mc.movie_id
    and t.id = mk.movie_id
    and mc.movie_id = mk.movie_id
    and mk.keyword_id = k.id
    and mc.company_id = cn.id
    and cn.country_code = '[jp]'
    and k.keyword in ('cartoon');
