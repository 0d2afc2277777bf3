-- Quantile regression: from levels to predictions that never cross, and everything that goes with a predictor.
SET client_min_messages = warning;
CREATE TABLE qt AS SELECT i AS id, i % 50 AS x, 'k' || i % 3 AS k,
    i % 50 + (i * 7919) % 1009 / 1009.0 * (1 + i % 50) + 10 * (i % 3) AS y FROM generate_series(1, 1500) AS i;
\set quick '{"problem_type": "quantile", "ignored_columns": ["id"], "hyperparameters": {"GBM": {"num_boost_round": 150, "learning_rate": 0.1}}}'
SELECT ag_fit('qt', 'y', :'quick'::jsonb || '{"name": "qt", "quantile_levels": [0.9, 0.1, 0.5]}');
SELECT problem_type, eval_metric, predict_with, score_val < 0 AS scored FROM ag_models WHERE name = 'qt';
-- in the order of quantile_levels; the same by each form and by the planner's
SELECT bool_and(q[2] <= q[3] AND q[3] <= q[1]) AS ordered, bool_and(q[3] = ag_predict('qt', t)) AS middle,
    avg((y BETWEEN q[2] AND q[1])::int) BETWEEN 0.72 AND 0.88 AS covers, bool_and(cardinality(q) = 3) AS n
FROM (SELECT t.*, ag_predict_quantiles('qt', t) AS q FROM qt AS t) AS t;
SELECT bool_and(ag_predict_quantiles('qt', t) = ag_predict_quantiles('qt', to_jsonb(t))) AS jsonb,
    bool_and(ag_predict_quantiles('qt', t) = ag_predict_quantiles('qt', to_jsonb(t)::text)) AS text FROM qt AS t WHERE id <= 100;
SELECT bool_and(p.quantiles = ag_predict_quantiles('qt', t) AND p.value = ag_predict('qt', t) AND p.proba IS NULL) AS same
FROM ag_predict_table('qt', 'qt', 'id') AS p JOIN qt AS t ON t.id::text = p.key;
SELECT ag_predict('qt', qt, 1::int) = round(ag_predict('qt', qt)) AS typed FROM qt WHERE id = 7;
SELECT ag_predict_quantiles('qt', NULL::jsonb) IS NULL AS none;
-- the metric is what SQL makes of the predictions
SELECT metric, abs(value - (SELECT avg(greatest(l * (y - q), (l - 1) * (y - q))) FROM
    (SELECT t.y, u.q, u.l FROM qt AS t, LATERAL unnest(ag_predict_quantiles('qt', t), ARRAY[0.9, 0.1, 0.5]) AS u(q, l)) AS p)) < 1e-9 AS same
FROM ag_evaluate('qt', 'qt');
SELECT model, score_val < 0 AS val FROM ag_leaderboard('qt') ORDER BY model;
SELECT feature, importance > 0 AS counts FROM ag_feature_importance('qt', 'qt', num_shuffle_sets => 2) ORDER BY feature;
SELECT abs(sum(contribution) - (SELECT ag_predict('qt', '{"x": 30, "k": "k1"}'))) < 1e-6 AS sums_up FROM ag_explain('qt', '{"x": 30, "k": "k1"}');
SELECT count(*) > 2 AS shown FROM ag_partial_dependence('qt', 'qt', 'x');
SELECT name, type FROM (SELECT DISTINCT parameter AS name, type FROM ag_families() WHERE parameter IN ('objective', 'loss_function')) AS f ORDER BY name;
-- bags, models fitted again, the ensemble
SELECT ag_fit('qt', 'y', '{"name": "qb", "problem_type": "quantile", "ignored_columns": ["id"], "num_bag_folds": 3, "refit_full": true,
    "set_best_to_refit_full": true, "hyperparameters": {"GBM": {"num_boost_round": 30}, "XGB": {"n_estimators": 30}, "CAT": {"iterations": 30}}}');
SELECT bool_and(q = (SELECT array_agg(v ORDER BY v) FROM unnest(q) AS v)) AS ordered, min(cardinality(q)) AS levels
FROM (SELECT ag_predict_quantiles('qb', t) AS q FROM qt AS t) AS t;
SELECT best_model FROM ag_models WHERE name = 'qb';
-- nets and the linear model
SELECT ag_fit('qt', 'y', '{"name": "qn", "problem_type": "quantile", "quantile_levels": [0.1, 0.5, 0.9], "ignored_columns": ["id"],
    "hyperparameters": {"LR": {}, "NN_TORCH": {"num_epochs": 30}, "FASTAI": {"epochs": 20}, "REALMLP": {"num_epochs": 20}, "TABM": {"n_epochs": 20}}}');
SELECT m AS net, bool_and(q[1] <= q[2] AND q[2] <= q[3]) AS ordered, abs(avg((y < q[1])::int) - 0.1) < 0.08 AND abs(avg((y < q[2])::int) - 0.5) < 0.1
    AND abs(avg((y < q[3])::int) - 0.9) < 0.08 AS covers
FROM (SELECT t.y, m, ag_predict_quantiles('qn/' || m, t) AS q FROM qt AS t, unnest(ARRAY['LR', 'NN_TORCH', 'FASTAI', 'REALMLP', 'TABM']) AS m) AS s GROUP BY m ORDER BY m COLLATE "C";
-- conformal calibration: rows that no model has seen lie below each quantile as often as it says, within four standard errors; by weight, where
-- rows are weighted in scores, which is another thing where heavy rows are spread wider.
CREATE TABLE qc AS SELECT i AS id, i % 40 AS x, 1 + 8 * (i % 2) AS w, i % 40 + ((hashint4(i) & 65535) / 65536.0 - 0.5) * (CASE WHEN i % 2 = 0 THEN 4 ELSE 40 END) AS y,
    hashint4(i + 100000) & 1 = 0 AS fitted FROM generate_series(1, 6000) AS i;
CREATE FUNCTION qc_far(model text, weighed bool) RETURNS TABLE (level float8, far bool) LANGUAGE sql AS $$
    SELECT l, abs(sum(w * (y <= q)::int) / sum(w) - l) > 4 * sqrt(l * (1 - l) * 2 * sum(w * w) / sum(w) ^ 2)
    FROM (SELECT l, q, y, CASE WHEN weighed THEN w ELSE 1 END::float8 AS w FROM qc, unnest(ag_predict_quantiles(model, qc), ARRAY[0.05, 0.3, 0.5, 0.9]) AS u (q, l) WHERE NOT fitted) AS s
    GROUP BY l ORDER BY l $$;
\set few '{"problem_type": "quantile", "quantile_levels": [0.05, 0.3, 0.5, 0.9], "num_bag_folds": 3, "ignored_columns": ["id", "w", "fitted"], "hyperparameters": {"GBM": {"num_boost_round": 3}}, "verbosity": 0}'
SELECT ag_fit('SELECT * FROM qc WHERE fitted', 'y', :'few'::jsonb || '{"name": "qc"}');
SELECT ag_fit('SELECT * FROM qc WHERE fitted', 'y', :'few'::jsonb || '{"name": "qc_as_is", "calibrate": false}');
SELECT ag_fit('SELECT * FROM qc WHERE fitted', 'y', :'few'::jsonb || '{"name": "qc_weighed", "sample_weight": "w", "weight_evaluation": true}');
SELECT * FROM qc_far('qc', false);
SELECT bool_or(far) AS far FROM qc_far('qc_as_is', false);
SELECT * FROM qc_far('qc_weighed', true);
SELECT bool_or(far) AS far FROM qc_far('qc_weighed', false);
SELECT p.name, m.name AS member, jsonb_array_length(quantile_shifts) AS shifts FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor WHERE p.name LIKE 'qc%' AND m.fold IS NULL ORDER BY 1, 2;
-- the same by rows and by batches, in ascending order, and explained to the same sum
SELECT bool_and(p.quantiles = ag_predict_quantiles('qc', t)) AS same, bool_and(p.quantiles[1] <= p.quantiles[2] AND p.quantiles[3] <= p.quantiles[4]) AS ordered
FROM ag_predict_table('qc', 'qc', 'id') AS p JOIN qc AS t ON t.id::text = p.key;
SELECT abs(sum(contribution) - ag_predict('qc', '{"x": 30}')) < 1e-6 AS sums_up FROM ag_explain('qc', '{"x": 30}');
-- forged ones
UPDATE ag_member SET quantile_shifts = '[1, 2]' WHERE quantile_shifts IS NOT NULL;
\c
SET client_min_messages = warning;
SELECT ag_predict_quantiles('qc', '{"x": 30}');
UPDATE ag_member SET quantile_shifts = '{"a": 1}' WHERE quantile_shifts IS NOT NULL;
\c
SET client_min_messages = warning;
SELECT ag_predict_quantiles('qc', '{"x": 30}');
UPDATE ag_member SET quantile_shifts = NULL;
DROP TABLE qc;
DROP FUNCTION qc_far;
-- errors name what is wrong
SELECT ag_fit('qt', 'y', '{"problem_type": "quantile", "quantile_levels": []}');
SELECT ag_fit('qt', 'y', jsonb_build_object('problem_type', 'quantile', 'quantile_levels', (SELECT jsonb_agg(i / 102.0) FROM generate_series(1, 101) i)));
SELECT ag_fit('qt', 'y', '{"problem_type": "quantile", "quantile_levels": [0.5, 1.5]}');
SELECT ag_fit('qt', 'y', '{"problem_type": "quantile", "quantile_levels": [0.5, 0.5]}');
SELECT ag_fit('qt', 'y', '{"quantile_levels": [0.5]}');
SELECT ag_fit('qt', 'k', '{"problem_type": "quantile"}');
SELECT ag_fit('qt', 'y', '{"problem_type": "quantile", "sample_weight": "balance_weight"}');
SELECT ag_fit('qt', 'y', '{"name": "reg", "verbosity": 0, "problem_type": "regression", "hyperparameters": {"GBM": {"num_boost_round": 5}}}');
SELECT ag_predict_quantiles('reg', '{"id": 1, "x": 1, "k": "k1"}');
SELECT ag_predict_class('qt', '{"x": 1, "k": "k1"}');
-- losses of regression, and labels that they don't fit
SELECT ag_fit('SELECT x, k, y - 20 AS y FROM qt', 'y', '{"name": "l", "hyperparameters": {"GBM": {"objective": "poisson"}}}');
SELECT ag_fit('SELECT x, k, y - 20 AS y FROM qt', 'y', '{"name": "l", "hyperparameters": {"CAT": {"loss_function": "Tweedie:variance_power=1.5"}}}');
SELECT ag_fit('qt', 'y', '{"name": "l", "ignored_columns": ["id"], "eval_metric": "mean_absolute_error", "hyperparameters": {"GBM": [{"objective": "huber", "alpha": 5, "num_boost_round": 50},
    {"objective": "tweedie", "num_boost_round": 50}], "XGB": {"objective": "reg:gamma", "n_estimators": 50}, "CAT": {"loss_function": "Quantile:alpha=0.5", "iterations": 50}}}');
SELECT m.name, m.hyperparameters ->> 'objective' AS objective, m.hyperparameters ->> 'loss_function' AS loss_function, m.score_val > -25 AS good
FROM ag_member AS m JOIN ag_predictor AS p ON p.id = m.predictor WHERE p.name = 'l' AND m.family <> 'ENS_WEIGHTED' ORDER BY m.name;
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE qt;
