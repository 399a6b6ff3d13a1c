-- How many phrases were searched for?
select
    count(distinct SearchPhrase)
from
    hits;
