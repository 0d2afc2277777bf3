-- ag_partial_dependence: the mean of ag_predict over rows that all have one value
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20}}}'
CREATE TABLE pd AS SELECT i % 8 AS x, CASE WHEN i % 6 > 0 THEN 'k' || i % 5 END AS k, date '2024-01-01' + i % 40 AS d, i * 7 % 301 AS w, (i % 8) * 3.0 + i % 5 + i % 40 AS y,
    (i % 8) + i % 5 > 5 AS b, CASE WHEN i % 8 > 5 THEN 'a' WHEN i % 5 > 2 THEN 'b' ELSE 'c' END AS c FROM generate_series(1, 600) i;
SELECT ag_fit('SELECT x, k, d, w, y FROM pd', 'y', :'quick'::jsonb || '{"name": "reg"}');
SELECT ag_fit('SELECT x, k, d, w, b FROM pd', 'b', :'quick'::jsonb || '{"name": "two"}');
SELECT ag_fit('SELECT x, k, d, w, c FROM pd', 'c', :'quick'::jsonb || '{"name": "three"}');
SELECT value, round(share::numeric, 4) AS share, abs(mean - (SELECT avg(ag_predict('reg', r)) FROM (SELECT p.value::int AS x, k, d, w FROM pd) r)) < 1e-9 AS as_sql_has_it
FROM ag_partial_dependence('reg', 'pd', 'x') p;
SELECT value, abs(mean - (SELECT avg(ag_predict_proba('two', r, true)) FROM (SELECT x, p.value AS k, d, w FROM pd) r)) < 1e-9 AS as_sql_has_it
FROM ag_partial_dependence('two', 'SELECT * FROM pd', 'k') p;
SELECT count(*), bool_and(abs(mean - (SELECT avg(ag_predict_proba('three', r, 'b')) FROM (SELECT x, k, p.value::date AS d, w FROM pd) r)) < 1e-9) AS as_sql_has_it,
    min(value::date), max(value::date), bool_and(value::date > last) AS ascending
FROM (SELECT *, lag(value::date) OVER () AS last FROM ag_partial_dependence('three', 'pd', 'd', 15, 'b')) p;
SELECT count(*), min(value::int), max(value::int) FROM ag_partial_dependence('reg', 'pd', 'w', points => 5);
SELECT array_agg(value) FROM ag_partial_dependence('reg', 'SELECT NULLIF(x, 3) AS x, k, d, w FROM pd', 'x', 3);
SELECT array_agg(value) AS commonest FROM ag_partial_dependence('reg', 'SELECT x, CASE WHEN x < 5 THEN ''k2'' WHEN x = 6 THEN ''k0'' ELSE ''k1'' END AS k, d, w FROM pd', 'k', 2);
-- more rows than are used: a sample, the same each time
SELECT count(*) AS differ FROM (SELECT * FROM ag_partial_dependence('reg', 'SELECT p.* FROM pd p, generate_series(1, 5)', 'x') EXCEPT
    SELECT * FROM ag_partial_dependence('reg', 'SELECT p.* FROM pd p, generate_series(1, 5)', 'x')) s;
SELECT count(*) FROM ag_partial_dependence('reg', 'SELECT * FROM pd WHERE false', 'x');
SELECT count(*) FROM ag_partial_dependence(NULL, 'pd', 'x');
SELECT * FROM ag_partial_dependence('reg', 'pd', 'nothing');
SELECT * FROM ag_partial_dependence('reg', 'pd', 'y');
SELECT * FROM ag_partial_dependence('three', 'pd', 'x');
SELECT * FROM ag_partial_dependence('reg', 'pd', 'x', 20, 'a');
SELECT * FROM ag_partial_dependence('reg', 'pd', 'x', 1);
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE pd;
