-- the threshold of a binary problem: found by the metric, set by hand, used wherever a class is told
SET client_min_messages = warning;
CREATE TABLE rare AS SELECT i % 50 AS x, (i * 7) % 31 AS z, CASE WHEN (i * 37) % 101 < (i % 50) / 2 THEN 'yes' ELSE 'no' END AS y
FROM generate_series(1, 600) i;
SELECT ag_fit('rare', 'y', '{"name": "rare", "eval_metric": "f1", "verbosity": 0, "num_bag_folds": 3, "hyperparameters": {"GBM": {"num_boost_round": 20}, "LR": {}}}');
SELECT decision_threshold > 0 AND decision_threshold < 0.5 AS low FROM ag_predictor;
SELECT (ag_info('rare') ->> 'decision_threshold')::float8 = decision_threshold AS told FROM ag_predictor;
SELECT bool_and((ag_predict_class('rare', t) = 'yes') = (ag_predict_proba('rare', t, 'yes') > p.decision_threshold)) AS by_threshold,
    count(*) FILTER (WHERE ag_predict_class('rare', t) = 'yes') > count(*) FILTER (WHERE ag_predict_proba('rare', t, 'yes') > 0.5) AS more
FROM rare t, ag_predictor p;
SELECT abs(e.value - 2.0 * tp / (2.0 * tp + fp + fn)) < 1e-9 AS same FROM ag_evaluate('rare', 'rare') e,
    (SELECT count(*) FILTER (WHERE p = 'yes' AND y = 'yes') AS tp, count(*) FILTER (WHERE p = 'yes' AND y = 'no') AS fp,
        count(*) FILTER (WHERE p = 'no' AND y = 'yes') AS fn FROM (SELECT y, ag_predict_class('rare', t) AS p FROM rare t) s) c WHERE e.metric = 'f1';
SELECT bool_and(prediction = ag_predict_class('rare', t)) AS same FROM ag_predict_table('rare', 'SELECT *, row_number() OVER () AS nr FROM rare', 'nr') p
JOIN (SELECT *, row_number() OVER () AS nr FROM rare) t ON t.nr = p.key::bigint;

-- by hand; a prepared statement follows
PREPARE positives AS SELECT count(*) FILTER (WHERE ag_predict_class('rare', t) = 'yes') AS n FROM rare t;
SELECT ag_set_decision_threshold('rare', 1) BETWEEN 0.01 AND 0.5 AS before;
EXECUTE positives;
SELECT ag_set_decision_threshold('rare', 0);
EXECUTE positives;
SELECT ag_set_decision_threshold('rare@1', NULL);
SELECT count(*) FILTER (WHERE ag_predict_class('rare', t) = 'yes') = count(*) FILTER (WHERE ag_predict_proba('rare', t, 'yes') > 0.5) AS half FROM rare t;
SELECT ag_set_decision_threshold('rare', 1.5);
SELECT ag_set_decision_threshold('rare', 'NaN');
SELECT ag_set_decision_threshold('rare/GBM_BAG_L1', 0.5);
SELECT ag_set_decision_threshold('nothing', 0.5);
SELECT ag_set_decision_threshold(NULL, 0.5);
CREATE ROLE threshold_reader;
SELECT ag_grant('rare', 'threshold_reader', 'predict');
SET ROLE threshold_reader;
SELECT ag_set_decision_threshold('rare', 0.1);
RESET ROLE;
SELECT ag_revoke('rare', 'threshold_reader', 'predict');
DROP ROLE threshold_reader;

-- switched off; nothing for a metric of probabilities, nor for numbers
SELECT ag_fit('rare', 'y', '{"name": "off", "eval_metric": "f1", "verbosity": 0, "calibrate_decision_threshold": false, "hyperparameters": {"LR": {}}}');
SELECT ag_fit('rare', 'y', '{"name": "auc", "eval_metric": "roc_auc", "verbosity": 0, "hyperparameters": {"LR": {}}}');
SELECT ag_fit('rare', 'z', '{"name": "number", "verbosity": 0, "calibrate": true, "calibrate_decision_threshold": true, "hyperparameters": {"LR": {}}}');
SELECT name, decision_threshold FROM ag_predictor WHERE name <> 'rare' ORDER BY name;
SELECT ag_set_decision_threshold('number', 0.5);

-- probabilities at another temperature: of the best model only, still probabilities, in the same order
SELECT ag_fit('rare', 'y', '{"name": "warm", "eval_metric": "log_loss", "verbosity": 0, "calibrate": true, "fit_weighted_ensemble": false, "hyperparameters": {"RF": {"n_estimators": 20}}}');
SELECT temperature > 1 AS cooler FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor WHERE p.name = 'warm';
SELECT bool_and(abs(p + ag_predict_proba('warm', t, 'no') - 1) < 1e-12) AS sums, avg(abs(p - 0.5)) < 0.5 AS softer
FROM (SELECT t, ag_predict_proba('warm', t, 'yes') AS p FROM rare t) s;
SELECT abs(sum(contribution) - max(ag_predict_proba('warm', t, 'yes'))) < 1e-6 AS sums
FROM (SELECT * FROM rare LIMIT 1) AS t, ag_explain('warm', t, 'yes');

SELECT ag_drop(name) FROM ag_models ORDER BY name;
DROP TABLE rare;
