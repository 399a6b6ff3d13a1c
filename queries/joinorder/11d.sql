-- Which company made sequels at all that are no productions?
select
    min(cn.name) as company,
    min(lt.link) as link,
    min(t.title) as title
from
    title as t,
    movie_keyword as mk,
    keyword as k,
    movie_link as ml,
    link_type as lt,
    movie_companies as mc,
    company_name as cn,
    company_type as ct
where
    t.id = mk.movie_id
    and t.id = ml.movie_id
    and t.id = mc.movie_id
    and mk.movie_id = ml.movie_id
    and ml.movie_id = mc.movie_id
    and mk.movie_id = mc.movie_id
    and mk.keyword_id = k.id
    and mc.company_id = cn.id
    and mc.company_type_id = ct.id
    and ml.link_type_id = lt.id
    and cn.country_code <> '[pl]'
    and k.keyword in ('sequel', 'revenge', 'based-on-novel')
    and ct.kind <> 'production companies'
    and t.production_year > 1950;
