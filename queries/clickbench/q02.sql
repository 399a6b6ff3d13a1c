-- How do a sum, a count and a mean of narrow columns come out over all hits?
select
    sum(AdvEngineID),
    count(*),
    avg(ResolutionWidth)
from
    hits;
