-- Monotone constraints: predictions never go the other way, and what can't keep them is left out or refused
SET client_min_messages = warning;
CREATE TABLE mt AS SELECT i % 60 AS x, (i * 7919) % 83 AS z, 'k' || i % 3 AS k, date '2024-01-01' + i % 50 AS d,
    (i % 60) + 15 * sin((i % 60) / 2.0) - (i * 7919) % 83 / 4.0 + (i * 31) % 17 AS y FROM generate_series(1, 1200) AS i;
\set models '{"hyperparameters": {"GBM": {"num_boost_round": 60, "learning_rate": 0.1}, "XGB": {"n_estimators": 60}}}'
CREATE FUNCTION mt_falls(model text) RETURNS bigint LANGUAGE sql AS $$
    SELECT count(*) FILTER (WHERE p < before) FROM
    (SELECT p, lag(p) OVER (PARTITION BY z, k ORDER BY x) AS before FROM
        (SELECT x, z, k, ag_predict(model, g) AS p FROM
            (SELECT x, z, k, NULL::date AS d FROM generate_series(-2, 62) AS x, generate_series(0, 82, 20) AS z, unnest(ARRAY['k0', 'k2']) AS k) AS g) AS p) AS s $$;
SELECT ag_fit('mt', 'y', :'models'::jsonb || '{"name": "free"}');
SELECT ag_fit('mt', 'y', :'models'::jsonb || '{"name": "bound", "monotone_constraints": {"x": 1, "z": -1, "k": 0}}');
SELECT mt_falls('free') > 50 AS free, mt_falls('bound') AS bound;
SELECT mt_falls('bound/GBM') AS gbm, mt_falls('bound/XGB') AS xgb;
-- of one model
SELECT ag_fit('mt', 'y', '{"name": "one", "hyperparameters": {"GBM": [{"num_boost_round": 40, "monotone_constraints": {"x": 1}}, {"num_boost_round": 40}]}}');
SELECT mt_falls('one/GBM') AS bound, mt_falls('one/GBM_2') > 50 AS free;
SELECT ag_info('bound') -> 'options' -> 'monotone_constraints' AS asked;
-- two classes
SELECT ag_fit('SELECT x, z, y > 10 AS big FROM mt', 'big', '{"name": "cls", "monotone_constraints": {"x": 1}, "hyperparameters": {"GBM": {"num_boost_round": 60}}}');
SELECT count(*) FILTER (WHERE p < before) AS falls FROM (SELECT p, lag(p) OVER (PARTITION BY z ORDER BY x) AS before FROM
    (SELECT x, z, ag_predict_proba('cls', g, true) AS p FROM (SELECT x, z FROM generate_series(0, 59) AS x, generate_series(0, 82, 20) AS z) AS g) AS p) AS s;
-- refused by name
SELECT ag_fit('mt', 'y', '{"monotone_constraints": {"x": 2}}');
SELECT ag_fit('mt', 'y', '{"monotone_constraints": ["x"]}');
SELECT ag_fit('mt', 'y', :'models'::jsonb || '{"monotone_constraints": {"nothing": 1}}');
SELECT ag_fit('mt', 'y', :'models'::jsonb || '{"monotone_constraints": {"X": 1}}');
SELECT ag_fit('mt', 'y', :'models'::jsonb || '{"monotone_constraints": {"k": 1}}');
SELECT ag_fit('mt', 'y', :'models'::jsonb || '{"monotone_constraints": {"d": 1}}');
SELECT ag_fit('mt', 'k', :'models'::jsonb || '{"monotone_constraints": {"x": 1}}');
SELECT ag_fit('mt', 'y', '{"monotone_constraints": {"x": 1}, "hyperparameters": {"KNN": {}}}');
SELECT ag_fit('mt', 'y', '{"monotone_constraints": {"x": 1}, "problem_type": "quantile"}');
SELECT ag_fit('mt', 'y', '{"hyperparameters": {"KNN": {"monotone_constraints": {"x": 1}}}}');
SELECT ag_fit('mt', 'y', '{"name": "some", "monotone_constraints": {"x": 1}, "hyperparameters": {"GBM": {"num_boost_round": 3, "objective": "l1"}, "LR": {}}}');
SELECT ag_fit('mt', 'y', '{"name": "some", "monotone_constraints": {"x": 1}, "eval_metric": "mean_absolute_error", "hyperparameters": {"GBM": {"num_boost_round": 3}, "LR": {}}}');
SELECT model FROM ag_leaderboard('some');
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP FUNCTION mt_falls;
DROP TABLE mt;
