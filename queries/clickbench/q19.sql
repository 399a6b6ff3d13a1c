-- Which hits does one user have?
select
    UserID
from
    hits
where
    UserID = 435090932899640449;
