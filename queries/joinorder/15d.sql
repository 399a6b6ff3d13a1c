-- What are other titles of films with an American release of the internet?
select
    min(mi.info) as released,
    min(t.title) as title
from
    title as t,
    aka_title as aka,
    movie_info as mi,
    info_type as it1,
    movie_keyword as mk,
    keyword as k,
    movie_companies as mc,
    company_name as cn,
    company_type as ct
where
    t.id = aka.movie_id
    and t.id = mi.movie_id
    and t.id = mk.movie_id
    and t.id = mc.movie_id
    and aka.movie_id = mi.movie_id
    and mi.movie_id = mk.movie_id
    and mk.movie_id = mc.movie_id
    and aka.movie_id = mc.movie_id
    and mk.keyword_id = k.id
    and mc.company_id = cn.id
    and mc.company_type_id = ct.id
    and mi.info_type_id = it1.id
    and cn.country_code = '[us]'
    and it1.info = 'release dates'
    and mi.note like '%internet%'
    and t.production_year > 1990
    and aka.title <> t.title;
