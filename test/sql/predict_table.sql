-- ag_predict_table: what the functions for single rows say, many rows at a time
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20}}}'
CREATE TABLE r AS SELECT i AS id, i % 31 AS x, CASE WHEN i % 9 > 0 THEN 'k' || i % 5 END AS k, (i % 31) * 1.5 + i % 5 AS y,
    CASE WHEN i % 31 > 15 THEN 'big' ELSE 'small' END AS c, (i % 31) / 11 AS n FROM generate_series(1, 1000) i;
SELECT ag_fit('SELECT x, k, y FROM r', 'y', :'quick'::jsonb || '{"name": "reg"}');
SELECT ag_fit('SELECT x, k, c FROM r', 'c', :'quick'::jsonb || '{"name": "cls"}');
SELECT ag_fit('SELECT x, k, n FROM r', 'n', :'quick'::jsonb || '{"name": "num"}');
SELECT count(*), bool_and(t.value = ag_predict('reg', r) AND t.prediction::float8 = t.value AND t.proba IS NULL AND t.quantiles IS NULL) AS same
FROM ag_predict_table('reg', 'r', 'id') t JOIN r ON r.id::text = t.key;
SELECT count(*), bool_and(t.prediction = ag_predict_class('cls', r) AND t.proba = ag_predict_proba('cls', r) AND t.value IS NULL) AS same
FROM ag_predict_table('cls', 'SELECT id AS "Nr", k, x FROM r', 'nr') t JOIN r ON r.id::text = t.key;
SELECT count(*), bool_and(t.prediction = ag_predict_class('num', r) AND t.value = ag_predict('num', r)) AS same
FROM ag_predict_table('num', 'r', 'id') t JOIN r ON r.id::text = t.key;
SELECT count(*), count(key) AS keys FROM ag_predict_table('reg', 'r');
SELECT count(*), count(key) AS keys FROM ag_predict_table('reg', 'SELECT x, k, NULLIF(x, 3) AS key FROM r', 'key');
SELECT count(*) FROM ag_predict_table('reg', 'SELECT * FROM r WHERE false', 'id');
SELECT count(*) FROM ag_predict_table(NULL, 'r') a, ag_predict_table('reg', NULL) b;
-- in the order of the query; more rows than work_mem holds
SELECT bool_and(key::int = n) AS in_order FROM ag_predict_table('reg', 'SELECT * FROM r ORDER BY id DESC', 'id') WITH ORDINALITY t(key, prediction, value, proba, quantiles, o), LATERAL (SELECT 1001 - o AS n) n;
SET work_mem = 64;
SELECT count(*), count(DISTINCT key) AS keys FROM ag_predict_table('cls', 'SELECT a.id * 10 + b AS id, x, k FROM r a, generate_series(0, 9) b', 'id');
RESET work_mem;
-- only columns that are needed are read: a right on them is enough
CREATE ROLE ag_reader;
GRANT SELECT (id, x, k) ON r TO ag_reader;
SET ROLE ag_reader;
SELECT count(*) FROM ag_predict_table('reg', 'r', 'id');
RESET ROLE;
SELECT ag_grant('reg', 'ag_reader');
SET ROLE ag_reader;
SELECT count(*) FROM ag_predict_table('reg', 'r', 'id');
SELECT count(*) FROM ag_predict_table('reg', 'r', 'y');
RESET ROLE;
-- what can't be
SELECT * FROM ag_predict_table('reg', 'r', 'nothing');
SELECT * FROM ag_predict_table('reg', 'SELECT x FROM r');
SELECT * FROM ag_predict_table('reg', 'DELETE FROM r RETURNING *');
SELECT * FROM ag_predict_table('reg', 'SELECT ''many'' AS x, k FROM r');
SELECT count(*) AS all_there FROM r;
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE r;
DROP ROLE ag_reader;
