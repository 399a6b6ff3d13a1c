-- What are any ten users and phrases, and how many hits do they have?
select
    UserID,
    SearchPhrase,
    count(*)
from
    hits
group by
    UserID,
    SearchPhrase
limit
    10;
