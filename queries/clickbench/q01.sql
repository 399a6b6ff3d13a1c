-- How many hits came from an advertisement?
select
    count(*)
from
    hits
where
    AdvEngineID <> 0;
