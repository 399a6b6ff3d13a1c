-- What are the first ten phrases in order?
select
    SearchPhrase
from
    hits
where
    SearchPhrase <> ''
order by
    SearchPhrase
limit
    10;
