-- Which ten regions have most users?
select
    RegionID,
    count(distinct UserID) as u
from
    hits
group by
    RegionID
order by
    u desc
limit
    10;
