-- Orders of one country, of a file that a variable names.
CREATE TEMPORARY VIEW orders USING csv OPTIONS (path 'gs://dataproc-tests/${source}', header 'true', inferSchema 'true');
INSERT OVERWRITE DIRECTORY 'gs://dataproc-tests/report' USING json
SELECT country, sum(amount) AS total FROM orders WHERE country = '${country}' GROUP BY country;
SELECT concat('ROWS ', count(*), ';') FROM orders;
