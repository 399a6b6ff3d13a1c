-- Which frequent hosts refer with the longest addresses?
select
    regexp_replace(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') as k,
    avg(strlen(Referer)) as l,
    count(*) as c,
    min(Referer)
from
    hits
where
    Referer <> ''
group by
    k
having
    count(*) > 100000
order by
    l desc
limit
    25;
