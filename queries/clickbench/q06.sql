-- Of which days are the hits?
select
    min(EventDate),
    max(EventDate)
from
    hits;
