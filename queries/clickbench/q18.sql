-- In which minute of the hour does which user search most often for which phrase?
select
    UserID,
    extract(minute from EventTime) as m,
    SearchPhrase,
    count(*)
from
    hits
group by
    UserID,
    m,
    SearchPhrase
order by
    count(*) desc
limit
    10;
