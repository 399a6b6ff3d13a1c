-- How many pages have google in their address?
select
    count(*)
from
    hits
where
    URL like '%google%';
