-- ag_refit_full: what predicts is trained once more, on all rows, by what the fit found, without validation
SET client_min_messages = warning;
CREATE TABLE rf AS SELECT i % 50 AS x, (i * 7) % 31 AS z, 'k' || i % 5 AS k, sin(i % 50) * 20 + (i * 7) % 31 AS y, CASE WHEN i % 50 + (i * 31) % 17 > 30 THEN 'hi' ELSE 'lo' END AS c FROM generate_series(1, 400) i;
CREATE FUNCTION rf_members(model text, of int) RETURNS TABLE (member text, bytes text, inputs int, weights jsonb) LANGUAGE sql AS $$
    SELECT m.name, md5(string_agg(t.data, NULL ORDER BY t.part)), jsonb_array_length(m.inputs), jsonb_path_query_array(m.inputs, '$[*].weight') FROM ag_predictor p JOIN ag_member m ON m.predictor = p.id
    LEFT JOIN ag_member_part t ON t.predictor = p.id AND t.member = m.ordinal WHERE p.name = model AND p.version = of AND m.fold IS NULL GROUP BY m.name, m.inputs $$;

-- bags that were fitted again with the fit: the same bytes, weights and answers
SELECT ag_fit('rf', 'y', '{"name": "rf_bag", "verbosity": 0, "num_bag_folds": 3, "ignored_columns": "c", "refit_full": true, "set_best_to_refit_full": true,
    "hyperparameters": {"GBM": [{"num_boost_round": 60}, {"num_leaves": 7, "num_boost_round": 40}], "LR": {}, "XT": {"n_estimators": 20}, "NN_TORCH": {"num_epochs": 4}}}');
SELECT ag_refit_full('rf_bag', '{"verbosity": 0}');
SELECT a.bytes = b.bytes AS same_bytes, count(*) > 1 AS some FROM rf_members('rf_bag', 1) a JOIN rf_members('rf_bag', 2) b USING (member) WHERE a.bytes IS NOT NULL GROUP BY 1;
SELECT b.member, a.weights = b.weights AS same_weights FROM rf_members('rf_bag', 1) a JOIN rf_members('rf_bag', 2) b USING (member) WHERE a.bytes IS NULL;
SELECT count(*) AS rows, count(*) FILTER (WHERE ag_predict('rf_bag@1', t) = ag_predict('rf_bag@2', t)) AS same FROM rf t;
SELECT version, best_model, score_val IS NULL AS unscored, rows FROM ag_models WHERE name = 'rf_bag';
SELECT bool_and(model LIKE '%\_FULL') AS full, count(score_val) AS scored, bool_and(can_infer) AS can_infer FROM ag_leaderboard('rf_bag');
SELECT count(score_test) = count(*) AS tested FROM ag_leaderboard('rf_bag', 'rf');
-- once more out of that, and repeated as a plan
SELECT ag_refit_full('rf_bag@2', '{"verbosity": 0, "num_cpus": 1}');
SELECT ag_fit('rf', 'y', '{"name": "rf_bag", "replay": "rf_bag@2", "verbosity": 0}');
SELECT count(*) > 1 AS some, bool_and(a.bytes IS NOT DISTINCT FROM b.bytes AND a.bytes IS NOT DISTINCT FROM c.bytes AND a.weights IS NOT DISTINCT FROM b.weights AND a.weights IS NOT DISTINCT FROM c.weights) AS same
FROM rf_members('rf_bag', 2) a FULL JOIN rf_members('rf_bag', 3) b USING (member) FULL JOIN rf_members('rf_bag', 4) c USING (member);
-- a refresh is a whole fit, as it was asked for at first
SELECT ag_refresh('rf_bag', 'always', '{"verbosity": 0}');
SELECT version, score_val IS NOT NULL AS scored FROM ag_models WHERE name = 'rf_bag';
-- one member by its name: the same bytes again, and what predicts from then on; each way to name it
SELECT ag_refit_full('rf_bag@1/GBM_BAG_L1', '{"verbosity": 0}'), ag_refit_full('rf_bag@1/XT_BAG_L1_FULL', '{"verbosity": 0}'), ag_refit_full('rf_bag@1/WeightedEnsemble_L2', '{"verbosity": 0}');
SELECT b.version, b.member, a.bytes = b.bytes AS same_bytes, p.best_model = b.member AS best
FROM (SELECT v.version, m.* FROM generate_series(6, 7) v (version), rf_members('rf_bag', v.version) m) b JOIN rf_members('rf_bag', 1) a USING (member) JOIN ag_predictor p ON p.name = 'rf_bag' AND p.version = b.version ORDER BY 1;
SELECT count(*) > 1 AS some, bool_and(a.bytes IS NOT DISTINCT FROM b.bytes AND a.weights IS NOT DISTINCT FROM b.weights) AS same FROM rf_members('rf_bag', 2) a FULL JOIN rf_members('rf_bag', 8) b USING (member);
SELECT count(*) FILTER (WHERE ag_predict('rf_bag@6', t) = ag_predict('rf_bag@1/GBM_BAG_L1_FULL', t)) = count(*) AS same FROM rf t;
SELECT ag_refit_full('rf_bag@1/GBM_BAG_L1/S1F1');
SELECT ag_refit_full('rf_bag@1/GBM_BAG_L9');

-- validated on rows held out, and trained on them at last: the same again; more rows are taken in
SELECT ag_fit('rf', 'y', '{"name": "rf_held", "verbosity": 0, "ignored_columns": "c", "hyperparameters": {"GBM": {"num_boost_round": 60}, "CAT": {"iterations": 20}, "KNN": {}}}');
SELECT ag_refit_full('rf_held', '{"verbosity": 0}');
SELECT count(*) FILTER (WHERE ag_predict('rf_held@1', t) = ag_predict('rf_held@2', t)) AS same FROM rf t;
INSERT INTO rf SELECT x, z, k, y + 100, c FROM rf;
SELECT ag_activate('rf_held', 1);
SELECT ag_refit_full('rf_held', '{"verbosity": 0}');
SELECT version, pinned, rows FROM ag_models WHERE name = 'rf_held';
SELECT avg(ag_predict('rf_held', t) - ag_predict('rf_held@1', t)) BETWEEN 30 AND 70 AS higher FROM rf t;
DELETE FROM rf WHERE y > 65;

-- one model that predicts, a threshold that was set, a temperature, a trial of a search; weights of rows and tuning data
SELECT ag_fit('rf', 'c', '{"name": "rf_one", "verbosity": 0, "eval_metric": "log_loss", "calibrate": true, "num_bag_folds": 2, "fit_weighted_ensemble": false, "num_trials": 2, "hyperparameters": {"RF": {"n_estimators": {"space": "int", "lower": 5, "upper": 9}}}}');
SELECT ag_set_decision_threshold('rf_one', 0.375) IS NOT NULL AS set;
SELECT ag_refit_full('rf_one', '{"verbosity": 0}');
SELECT p.version, p.best_model = o.best_model || '_FULL' AS best, p.decision_threshold, m.temperature = n.temperature AS same_temperature, n.hyperparameters -> 'n_estimators' = m.hyperparameters -> 'n_estimators' AS same_trial
FROM ag_predictor p JOIN ag_member m ON m.predictor = p.id AND m.name = p.best_model, ag_predictor o JOIN ag_member n ON n.predictor = o.id AND n.name = o.best_model WHERE p.name = 'rf_one' AND p.version = 2 AND o.name = 'rf_one' AND o.version = 1;
SELECT ag_refit_full('rf_one@1/RF/T1_BAG_L1', '{"verbosity": 0}');
SELECT best_model FROM ag_predictor WHERE name = 'rf_one' AND version = 3;
SELECT ag_fit('SELECT x, z, y, k FROM rf', 'y', '{"name": "rf_tuned", "verbosity": 0, "tuning_data": "SELECT x, z, y, k FROM rf WHERE x < 25", "sample_weight": "x", "hyperparameters": {"GBM": {"num_boost_round": 30}}}');
SELECT ag_refit_full('rf_tuned', '{"verbosity": 0}');
SELECT version, rows FROM ag_models WHERE name = 'rf_tuned';
-- quantiles stay where calibration had moved them
SELECT ag_fit('SELECT x, z, y FROM rf', 'y', '{"name": "rf_levels", "verbosity": 0, "problem_type": "quantile", "quantile_levels": [0.8, 0.3], "calibrate": true, "num_bag_folds": 3, "refit_full": true, "set_best_to_refit_full": true, "hyperparameters": {"GBM": {"num_boost_round": 40}, "LR": {}}}');
SELECT ag_refit_full('rf_levels', '{"verbosity": 0}');
SELECT count(*) = count(*) FILTER (WHERE ag_predict_quantiles('rf_levels@1', t) = ag_predict_quantiles('rf_levels@2', t)) AS same, count(*) FILTER (WHERE (ag_predict_quantiles('rf_levels', t))[1] < (ag_predict_quantiles('rf_levels', t))[2]) AS crossed FROM rf t;

-- what can't be
SELECT ag_fit('SELECT x, z, y FROM rf', 'y', '{"name": "rf_stacked", "verbosity": 0, "num_bag_folds": 3, "num_stack_levels": 1, "fit_weighted_ensemble": false, "hyperparameters": {"LR": {}}}');
UPDATE ag_predictor SET best_model = 'LR_BAG_L2' WHERE name = 'rf_stacked';
SELECT ag_refit_full('rf_stacked');
SELECT ag_refit_full('rf_one', '{"time_limit": 5}');
SELECT ag_refit_full('rf_one', '[]');
SELECT ag_refit_full('nobody');
SELECT ag_refit_full(NULL) IS NULL AS none;
BEGIN READ ONLY;
SELECT ag_refit_full('rf_one');
ROLLBACK;
-- another release's parameters, and its models
UPDATE ag_member SET hyperparameters = jsonb_set(hyperparameters, '{n_estimators}', '77') WHERE name ~ '^RF/T[12]_BAG_L1$';
SELECT ag_refit_full('rf_one@1');
SELECT max(version) AS newest FROM ag_predictor WHERE name = 'rf_one';
UPDATE ag_predictor SET options = options || '{"hyperparameters": {"LR": {}}}' WHERE name = 'rf_one';
SELECT ag_refit_full('rf_one@1');
UPDATE ag_predictor SET plan = plan - 'models' WHERE name = 'rf_one';
SELECT ag_refit_full('rf_one@1');
CREATE ROLE rf_reader;
SELECT ag_grant('rf_held', 'rf_reader', 'inspect');
SET ROLE rf_reader;
SELECT ag_refit_full('rf_held');
RESET ROLE;
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP FUNCTION rf_members;
DROP TABLE rf;
DROP ROLE rf_reader;
