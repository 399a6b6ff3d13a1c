-- What is the mean of a column of large numbers?
select
    avg(UserID)
from
    hits;
