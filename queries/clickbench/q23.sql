-- What are the first ten hits with google in their address?
select
    *
from
    hits
where
    URL like '%google%'
order by
    EventTime
limit
    10;
