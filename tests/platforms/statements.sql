-- Statements whose rows must be those of platform `local`: in order where they have ORDER BY. None
-- depends on the order in which floats are added.
SELECT count(*), sum(v), min(t), max(t), sum(d), min(day), avg(v) FROM many;
SELECT * FROM many WHERE v % 997 = 3;
SELECT k, count(*), sum(v), min(t), max(d) FROM many GROUP BY k;
SELECT t, count(*) AS n FROM many GROUP BY t ORDER BY n DESC, t NULLS FIRST LIMIT 7;
SELECT count(*), max(n) FROM (SELECT v, t, count(*) AS n FROM many GROUP BY v, t) AS g;
SELECT DISTINCT k % 7 FROM many;
SELECT count(DISTINCT k), count(DISTINCT t), median(v) FROM many;
SELECT k % 3 AS m, string_agg(DISTINCT CAST(k AS VARCHAR), ',' ORDER BY CAST(k AS VARCHAR)) FROM skewed GROUP BY 1;
SELECT k, count(*) FROM many GROUP BY k HAVING count(*) > 9 ORDER BY k;
SELECT k, v, sum(d) FROM many WHERE v < 30 GROUP BY GROUPING SETS ((k), (v), ());
-- Joins.
SELECT count(*), sum(a.v + b.v), min(b.t) FROM many AS a JOIN many AS b ON a.k = b.v;
SELECT a.t, b.v FROM many AS a JOIN many AS b ON a.t = b.t AND a.v < b.v WHERE a.v < 20 AND b.v < 500 ORDER BY a.v, b.v;
SELECT count(*), sum(a.v), count(b.v) FROM skewed AS a LEFT JOIN many AS b ON a.k = b.v AND b.v % 2 = 1;
SELECT count(*), count(a.v), sum(b.v) FROM skewed AS a RIGHT JOIN many AS b ON a.k = b.v;
SELECT count(*), count(a.v), count(b.v) FROM skewed AS a FULL JOIN many AS b ON a.k = b.v;
SELECT count(*), sum(v) FROM skewed AS a WHERE EXISTS (SELECT 1 FROM many AS b WHERE a.k = b.v AND b.v % 3 = 0);
SELECT count(*), sum(v) FROM many AS b WHERE NOT EXISTS (SELECT 1 FROM skewed AS a WHERE a.k = b.v);
SELECT count(*), sum(c.v) FROM many AS a JOIN many AS b ON a.v = b.v JOIN many AS c ON b.k = c.v JOIN one AS o ON o.k = c.k;
SELECT count(*) FROM gaps AS a JOIN one AS o ON a.v < o.v;
SELECT count(*), sum(a.v * o.v) FROM many AS a, one AS o;
-- Empty inputs.
SELECT * FROM empty;
SELECT count(*), sum(v), min(t) FROM empty;
SELECT k, count(*) FROM empty GROUP BY k;
SELECT count(*) FROM many AS m LEFT JOIN empty AS e ON m.k = e.k WHERE e.k IS NULL;
SELECT count(*), count(e.k) FROM many AS m FULL JOIN empty AS e ON m.k = e.k;
SELECT count(*) FROM many WHERE v < 0;
SELECT max(v) FROM many WHERE k NOT IN (SELECT k FROM empty);
SELECT v FROM empty ORDER BY v LIMIT 3;
SELECT v FROM empty UNION ALL SELECT v FROM one;
-- NULL keys.
SELECT k, count(*), sum(v) FROM gaps GROUP BY k;
SELECT k, t, count(*) FROM gaps GROUP BY k, t;
SELECT count(*), sum(a.v) FROM gaps AS a JOIN gaps AS b ON a.k = b.k;
SELECT count(*), sum(a.v), count(b.k) FROM gaps AS a LEFT JOIN gaps AS b ON a.k = b.k AND b.v < 100;
SELECT count(*), count(a.v), count(b.v) FROM gaps AS a FULL JOIN one AS b ON a.k = b.k;
SELECT count(*) FROM gaps AS a JOIN gaps AS b ON a.k IS NOT DISTINCT FROM b.k AND a.t IS NOT DISTINCT FROM b.t;
SELECT count(*) FROM many WHERE k NOT IN (SELECT k FROM gaps);
SELECT k FROM gaps EXCEPT SELECT k FROM gaps WHERE v < 50;
SELECT k, v FROM gaps ORDER BY k NULLS FIRST, v DESC LIMIT 5 OFFSET 198;
-- Orders, limits, unions, subqueries.
SELECT v FROM many ORDER BY t DESC NULLS LAST, v LIMIT 9;
SELECT v, t FROM many ORDER BY v;
SELECT count(*) FROM (SELECT v FROM many LIMIT 77) AS x;
SELECT count(*), sum(v) FROM (SELECT v FROM many UNION ALL SELECT v FROM skewed UNION ALL SELECT 1) AS x;
SELECT v FROM skewed INTERSECT SELECT k FROM many;
SELECT k, (SELECT max(v) FROM many AS m WHERE m.k = o.k) FROM one AS o;
SELECT count(*) FROM many WHERE v > (SELECT avg(v) FROM many);
SELECT x.k, y.v FROM (SELECT DISTINCT k FROM many WHERE k < 5) AS x, LATERAL (SELECT v FROM many AS m WHERE m.k = x.k ORDER BY v LIMIT 2) AS y;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 50) SELECT count(*), sum(n) FROM r JOIN many ON k = n;
SELECT 1 + 1, 'no table';
SELECT * FROM (VALUES (1, 'a'), (2, NULL), (NULL, 'c')) AS x(n, t);
-- Lists and structs cross between workers.
SELECT * FROM nested WHERE k < 20 ORDER BY k;
SELECT l, count(*) AS n FROM nested GROUP BY l ORDER BY n DESC, l LIMIT 3;
SELECT a.k, a.l, a.s, b.v FROM nested AS a JOIN many AS b ON a.k = b.v WHERE b.v % 50 = 7 ORDER BY a.k;
SELECT k, array_agg(v ORDER BY v) FROM many WHERE k < 3 GROUP BY k;
-- As in TPC-H.
SELECT k % 4 AS flag, sum(d), sum(d * d), count(*), min(day) FROM many WHERE day <= DATE '1996-06-01' GROUP BY 1 ORDER BY 1;
SELECT o.k, sum(l.d) AS revenue, min(o.day) FROM many AS o JOIN many AS l ON l.k = o.v
  WHERE o.day < DATE '1995-06-01' AND l.day > DATE '1995-06-01' GROUP BY o.k ORDER BY revenue DESC, o.k LIMIT 10;
SELECT count(*), sum(v) FROM many AS l WHERE v > (SELECT avg(v) FROM many AS i WHERE i.k = l.k);
SELECT n, count(*) AS keys FROM (SELECT s.k, count(m.v) AS n FROM skewed AS s LEFT JOIN many AS m ON s.k = m.k AND m.t LIKE '%3%' GROUP BY s.k) AS c
  GROUP BY n ORDER BY keys DESC, n DESC;
SELECT sum(CASE WHEN t LIKE 'text number 1%' THEN d ELSE 0 END), sum(d) FROM many WHERE day BETWEEN DATE '1995-02-01' AND DATE '1995-03-01';
