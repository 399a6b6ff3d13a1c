-- Which film not of America is linked with one of 2007 or later?
select
    min(cn1.name) as first_company,
    min(cn2.name) as second_company,
    min(mi_idx1.info) as first_rating,
    min(mi_idx2.info) as second_rating,
    min(t1.title) as first,
    min(t2.title) as second
from
    title as t1,
    title as t2,
    kind_type as kt1,
    kind_type as kt2,
    movie_link as ml,
    link_type as lt,
    movie_info_idx as mi_idx1,
    movie_info_idx as mi_idx2,
    info_type as it1,
    info_type as it2,
    movie_companies as mc1,
    movie_companies as mc2,
    company_name as cn1,
    company_name as cn2
where
    ml.link_type_id = lt.id
    and ml.movie_id = t1.id
    and ml.linked_movie_id = t2.id
    and t1.kind_id = kt1.id
    and t2.kind_id = kt2.id
    and mi_idx1.movie_id = t1.id
    and mi_idx2.movie_id = t2.id
    and mi_idx1.info_type_id = it1.id
    and mi_idx2.info_type_id = it2.id
    and mc1.movie_id = t1.id
    and mc2.movie_id = t2.id
    and mc1.company_id = cn1.id
    and mc2.company_id = cn2.id
    and ml.movie_id = mi_idx1.movie_id
    and ml.movie_id = mc1.movie_id
    and ml.linked_movie_id = mi_idx2.movie_id
    and ml.linked_movie_id = mc2.movie_id
    and it1.info = 'rating'
    and it2.info = 'rating'
    and cn1.country_code <> '[us]'
    and kt1.kind in ('movie', 'episode')
    and kt2.kind = 'movie'
    and lt.link like '%follow%'
    and mi_idx2.info < '8.0'
    and t2.production_year > 2007;
