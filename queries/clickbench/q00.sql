-- How many hits are there?
select
    count(*)
from
    hits;
