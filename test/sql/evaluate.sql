-- ag_evaluate: the values that SQL over the predictions gives
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 60, "learning_rate": 0.1}}}'
CREATE TABLE e AS SELECT i % 50 AS x, (i * 7) % 31 AS z, (i % 50) * 2.0 + (i * 7) % 31 AS y, CASE WHEN i % 50 + i % 9 > 25 THEN 'hi' ELSE 'lo' END AS c
    FROM generate_series(1, 500) i;
SELECT ag_fit('SELECT x, z, y FROM e', 'y', :'quick'::jsonb || '{"name": "reg"}');
SELECT ag_fit('SELECT x, z, c FROM e', 'c', :'quick'::jsonb || '{"name": "cls"}');
SELECT ag_fit('SELECT x, z, c FROM e', 'c', :'quick'::jsonb || '{"name": "ll", "eval_metric": "log_loss"}');
SET client_min_messages = notice;

SELECT metric FROM ag_evaluate('reg', 'e');
SELECT metric FROM ag_evaluate('cls', 'e');
SELECT metric FROM ag_evaluate('ll', 'e') LIMIT 1;
SELECT bool_and(abs(value - CASE metric WHEN 'root_mean_squared_error' THEN rmse WHEN 'mean_squared_error' THEN mse
        WHEN 'mean_absolute_error' THEN mae WHEN 'r2' THEN r2 WHEN 'pearsonr' THEN r ELSE value END) < 1e-9) AS as_sql_has_it
FROM ag_evaluate('reg', 'e'),
    (SELECT sqrt(avg((p - y) ^ 2)) AS rmse, avg((p - y) ^ 2) AS mse, avg(abs(p - y)) AS mae, 1 - sum((p - y) ^ 2) / (var_pop(y) * count(*)) AS r2,
        corr(p, y) AS r FROM (SELECT y, ag_predict('reg', e) AS p FROM e) s) t;
SELECT bool_and(abs(value - CASE metric WHEN 'accuracy' THEN acc WHEN 'log_loss' THEN ll ELSE value END) < 1e-9) AS as_sql_has_it
FROM ag_evaluate('cls', 'e'),
    (SELECT avg((ag_predict_class('cls', e) = c)::int) AS acc, avg(-ln(ag_predict_proba('cls', e, c))) AS ll FROM e) t;
SELECT a.value = b.value AS member FROM ag_evaluate('reg/GBM', 'e') a, ag_evaluate('reg@1/GBM', 'TABLE e') b WHERE a.metric = b.metric LIMIT 1;

-- labels that training never saw are wrong, rows without a label don't count; both are said
SELECT round(value::numeric, 3) AS accuracy FROM ag_evaluate('cls', 'SELECT x, z, CASE WHEN x % 10 = 0 THEN ''brand new'' ELSE ag_predict_class(''cls'', e) END AS c FROM e')
WHERE metric = 'accuracy';
SELECT round(value::numeric, 3) AS accuracy FROM ag_evaluate('cls', 'SELECT x, z, CASE WHEN x % 10 > 0 THEN ag_predict_class(''cls'', e) END AS c FROM e')
WHERE metric = 'accuracy';
SELECT value BETWEEN 0 AND 35 AS finite FROM ag_evaluate('ll', 'SELECT x, z, CASE WHEN x % 10 = 0 THEN ''brand new'' ELSE c END AS c FROM e') LIMIT 1;
SELECT metric, value FROM ag_evaluate('cls', 'SELECT x, z, ''hi'' AS c FROM e WHERE x > 45') WHERE metric = 'roc_auc';

-- what can't be
SELECT * FROM ag_evaluate('cls', 'SELECT x, z, NULL::text AS c FROM e');
SELECT * FROM ag_evaluate('cls', 'SELECT x, z, c FROM e WHERE false');
SELECT * FROM ag_evaluate('cls', 'SELECT x, z FROM e');
SELECT * FROM ag_evaluate('cls', 'SELECT x, c FROM e');
SELECT * FROM ag_evaluate('reg', 'SELECT x, z, ''NaN''::float8 AS y FROM e');
SELECT * FROM ag_evaluate('reg', 'SELECT x, z, ''many'' AS y FROM e');
SELECT * FROM ag_evaluate('cls', 'nowhere');
SELECT * FROM ag_evaluate('cls', 'DELETE FROM e RETURNING *');
SELECT * FROM ag_evaluate('cls', 'SELECT 1; SELECT 2');
SELECT * FROM ag_evaluate('nobody', 'e');
CREATE FUNCTION writes() RETURNS int LANGUAGE sql VOLATILE AS 'DELETE FROM e RETURNING 1';
SELECT * FROM ag_evaluate('cls', 'SELECT x, z, c, writes() FROM e');
SELECT count(*) AS nothing_lost FROM e;
SELECT count(*) FROM ag_evaluate(NULL, 'e');

-- the caller's own uncommitted rows count; reading needs no right to write
BEGIN;
DELETE FROM e WHERE x > 5;
INSERT INTO e SELECT 1, 1, 33, 'lo' FROM generate_series(1, 10);
SELECT count(*) > 0 AS some FROM ag_evaluate('reg', 'e');
ROLLBACK;
BEGIN READ ONLY;
SELECT count(*) > 0 AS read_only FROM ag_evaluate('reg', 'e');
COMMIT;

-- a label of another type that means the same
SET client_min_messages = warning;
CREATE TABLE n AS SELECT i % 30 AS x, i % 30 / 10 AS y, i % 30 > 14 AS b FROM generate_series(1, 300) i;
SELECT ag_fit('SELECT x, y FROM n', 'y', :'quick'::jsonb || '{"name": "n", "problem_type": "multiclass"}');
SELECT ag_fit('SELECT x, b FROM n', 'b', :'quick'::jsonb || '{"name": "b"}');
SET client_min_messages = notice;
SELECT count(DISTINCT value) AS one_value FROM unnest(ARRAY['SELECT x, y FROM n', 'SELECT x, y::numeric(5,2) AS y FROM n', 'SELECT x, y::text AS "Y" FROM n',
    'SELECT x, y || ''.0'' AS y FROM n', 'SELECT x, y::float4 AS y FROM n']) q, ag_evaluate('n', q) WHERE metric = 'accuracy';
SELECT count(DISTINCT value) AS one_value FROM unnest(ARRAY['SELECT x, b FROM n', 'SELECT x, b::int AS b FROM n', 'SELECT x, b::text AS b FROM n']) q,
    ag_evaluate('b', q) WHERE metric = 'accuracy';
SET client_min_messages = warning;
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE e, n;
DROP FUNCTION writes;

-- metrics of several classes: all of them, and a fit that is steered by each kind
CREATE TABLE e3 AS SELECT i AS x, CASE WHEN i % 7 = 0 THEN 'c' WHEN i < 60 THEN 'a' ELSE 'b' END AS k FROM generate_series(1, 120) i;
SELECT ag_fit('e3', 'k', :'quick'::jsonb || format('{"name": "many_%s", "eval_metric": "%s"}', replace(m, '_', ''), m)::jsonb)
FROM unnest('{roc_auc_ovo,roc_auc_ovr_weighted,quadratic_kappa,pac_score,f1_macro}'::text[]) m;
SELECT metric, value BETWEEN -1 AND 1 AS in_range FROM ag_evaluate('many_rocaucovo', 'e3') WHERE metric <> 'log_loss';
SELECT abs(l.score_test - e.value) < 1e-12 AS same FROM ag_leaderboard('many_pacscore', 'e3') l, ag_evaluate('many_pacscore/' || 'GBM', 'e3') e
WHERE l.model = 'GBM' AND e.metric = 'pac';
