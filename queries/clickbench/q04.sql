-- How many users were there?
select
    count(distinct UserID)
from
    hits;
