-- What are the ten regions with most hits like?
select
    RegionID,
    sum(AdvEngineID),
    count(*) as c,
    avg(ResolutionWidth),
    count(distinct UserID)
from
    hits
group by
    RegionID
order by
    c desc
limit
    10;
