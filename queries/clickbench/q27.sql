-- Which frequent counters have the longest addresses?
select
    CounterID,
    avg(strlen(URL)) as l,
    count(*) as c
from
    hits
where
    URL <> ''
group by
    CounterID
having
    count(*) > 100000
order by
    l desc
limit
    25;
