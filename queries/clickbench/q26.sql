-- What are the ten earliest phrases, those of one second in order?
select
    SearchPhrase
from
    hits
where
    SearchPhrase <> ''
order by
    EventTime,
    SearchPhrase
limit
    10;
