-- Statements whose error must be that of platform `local`, whichever worker has the tuple.
SELECT sum(1 / (v - 4711)) FROM many;
SELECT sum(1 / (v - 9999)) FROM many;
SELECT CAST(t AS INTEGER) FROM many WHERE v = 8001;
SELECT k, sum(CASE WHEN v = 5000 THEN v * 4000000000000000 END) FROM many GROUP BY k;
SELECT count(*) FROM many AS a JOIN many AS b ON a.k = b.v AND 10 / (b.v - 500) < 3;
SELECT (SELECT v FROM many AS m WHERE m.k = o.k) FROM one AS o;
