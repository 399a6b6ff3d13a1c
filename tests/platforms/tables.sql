-- The tables of the conformance suite of platforms. FOLDER stands for the database. A table of
-- several files has morsels for several workers.
COPY (SELECT i * 7919 % 1009 AS k, i AS v,
        CASE WHEN i % 11 > 0 THEN 'text number ' || CAST(i % 301 AS VARCHAR) || ' of some length' END AS t,
        CAST(i % 1000 AS DECIMAL(12, 2)) / 4 AS d, DATE '1995-01-01' + CAST(i % 700 AS INTEGER) AS day
      FROM generate_series(0, 4999) AS s(i)) TO 'FOLDER/many/0.parquet';
COPY (SELECT i * 7919 % 1009 AS k, i AS v,
        CASE WHEN i % 11 > 0 THEN 'text number ' || CAST(i % 301 AS VARCHAR) || ' of some length' END AS t,
        CAST(i % 1000 AS DECIMAL(12, 2)) / 4 AS d, DATE '1995-01-01' + CAST(i % 700 AS INTEGER) AS day
      FROM generate_series(5000, 7999) AS s(i)) TO 'FOLDER/many/1.parquet';
COPY (SELECT i * 7919 % 1009 AS k, i AS v,
        CASE WHEN i % 11 > 0 THEN 'text number ' || CAST(i % 301 AS VARCHAR) || ' of some length' END AS t,
        CAST(i % 1000 AS DECIMAL(12, 2)) / 4 AS d, DATE '1995-01-01' + CAST(i % 700 AS INTEGER) AS day
      FROM generate_series(8000, 9999) AS s(i)) TO 'FOLDER/many/2.parquet';
COPY (SELECT CASE WHEN i % 10 > 0 THEN 42 ELSE i END AS k, i AS v FROM generate_series(0, 1999) AS s(i))
  TO 'FOLDER/skewed/0.parquet';
COPY (SELECT CASE WHEN i % 10 > 0 THEN 42 ELSE i END AS k, i AS v FROM generate_series(2000, 3999) AS s(i))
  TO 'FOLDER/skewed/1.parquet';
-- Every second key is NULL.
COPY (SELECT CASE WHEN i % 2 = 0 THEN i % 40 END AS k, i AS v, CASE WHEN i % 3 = 0 THEN 'x' || CAST(i % 40 AS VARCHAR) END AS t
      FROM generate_series(0, 199) AS s(i)) TO 'FOLDER/gaps/0.parquet';
COPY (SELECT CASE WHEN i % 2 = 0 THEN i % 40 END AS k, i AS v, CASE WHEN i % 3 = 0 THEN 'x' || CAST(i % 40 AS VARCHAR) END AS t
      FROM generate_series(200, 399) AS s(i)) TO 'FOLDER/gaps/1.parquet';
COPY (SELECT 42 AS k, 7 AS v, 'only' AS t) TO 'FOLDER/one/0.parquet';
COPY (SELECT i AS k, i AS v, CAST(i AS VARCHAR) AS t FROM generate_series(1, 0) AS s(i)) TO 'FOLDER/empty/0.parquet';
COPY (SELECT i AS k, [i, NULL, i + 1] AS l, {'a': i % 3, 'b': 'b' || CAST(i AS VARCHAR)} AS s FROM generate_series(0, 499) AS s(i))
  TO 'FOLDER/nested/0.parquet';
