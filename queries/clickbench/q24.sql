-- What are the ten earliest phrases?
select
    SearchPhrase
from
    hits
where
    SearchPhrase <> ''
order by
    EventTime
limit
    10;
