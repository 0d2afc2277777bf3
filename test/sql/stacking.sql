-- levels of bags: names, columns of the leaderboard, single members, refits, what can't be
SET client_min_messages = warning;
CREATE TABLE stack AS SELECT i % 50 AS x, (i * 7) % 31 AS z, 'k' || i % 3 AS k, (i % 50) * 2.0 + (i * 7) % 31 AS y,
    CASE WHEN ((i % 50) * 2 + (i * 7) % 31) % 17 < 5 THEN 'low' WHEN i % 3 = 1 THEN 'mid' ELSE 'high' END AS c
FROM generate_series(1, 300) i;

SELECT ag_fit('stack', 'y', '{"name": "stack", "verbosity": 0, "num_bag_folds": 3, "num_stack_levels": 1, "time_limit": 60,
    "hyperparameters": {"GBM": {"num_boost_round": 30}, "LR": {}}}');
SELECT model, stack_level, can_infer, fit_order, score_val < 0 AS scored, fit_time >= fit_time_marginal AS fit_time,
    pred_time_val >= pred_time_val_marginal AS pred_time, fit_time_marginal > 0 AS own
FROM ag_leaderboard('stack') ORDER BY fit_order;
-- a stacker's times include those of what it looks at
SELECT s.fit_time > b.fit_time AS fit, s.pred_time_val > b.pred_time_val AS predict
FROM ag_leaderboard('stack') s, ag_leaderboard('stack') b WHERE s.model = 'GBM_BAG_L2' AND b.model = 'GBM_BAG_L1';
SELECT name, stack_level, fold, inputs FROM ag_member WHERE fold = 1 OR fold IS NULL AND name LIKE '%L2' AND family <> 'ENS_WEIGHTED' ORDER BY ordinal;
SELECT ag_info('stack') #> '{plan,options,num_stack_levels}' AS levels, ag_info('stack') #> '{models,GBM_BAG_L2,children}' AS children;

-- every member answers by its name, and a bag of the second level is the mean of its children
SELECT bool_and(ag_predict('stack/LR_BAG_L2', t) BETWEEN -20 AND 160) AS answers,
    bool_and(abs(ag_predict('stack/GBM_BAG_L2', t) - (ag_predict('stack/GBM_BAG_L2/S1F1', t) + ag_predict('stack/GBM_BAG_L2/S1F2', t) +
        ag_predict('stack/GBM_BAG_L2/S1F3', t)) / 3) < 1e-9) AS mean
FROM stack AS t;
SELECT sqrt(avg((ag_predict('stack', t) - y) ^ 2)) < 2 AS predicts, sqrt(avg((ag_predict('stack/WeightedEnsemble_L3', t) - y) ^ 2)) < 2 AS weighed FROM stack AS t;
SELECT bool_and(score_test < 0) AS scored, bool_and(pred_time_test >= pred_time_test_marginal) AS marginal FROM ag_leaderboard('stack', 'stack');
SELECT max(abs(p.value - ag_predict('stack/LR_BAG_L2', t))) < 1e-9 AS same
FROM ag_predict_table('stack/LR_BAG_L2', 'SELECT *, row_number() OVER () AS nr FROM stack', 'nr') p
JOIN (SELECT *, row_number() OVER () AS nr FROM stack) t ON t.nr = p.key::bigint;
SELECT abs(sum(contribution) - max(ag_predict('stack/LR_BAG_L2', t))) < 1e-6 AS sums
FROM (SELECT * FROM stack LIMIT 1) AS t, ag_explain('stack/LR_BAG_L2', t);

-- classes; refits stand on refits, and the bags are not stored
SELECT ag_fit('SELECT x, z, k, c FROM stack', 'c', '{"name": "classes", "verbosity": 0, "num_bag_folds": 4, "num_stack_levels": 2, "eval_metric": "log_loss",
    "refit_full": true, "set_best_to_refit_full": true, "ag_args_ensemble": {"save_bag_folds": false, "max_base_models": 1},
    "hyperparameters": {"GBM": {"num_boost_round": 20}, "LR": {}}}');
SELECT m.name, stack_level, can_infer, jsonb_array_length(inputs) AS inputs FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor WHERE p.name = 'classes' AND fold IS NULL ORDER BY ordinal;
SELECT count(*) FILTER (WHERE fold IS NOT NULL) AS children FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor WHERE p.name = 'classes';
SELECT bool_and(abs(p - 1) < 1e-9) AS sums FROM (SELECT (SELECT sum(value::float8) FROM jsonb_each_text(ag_predict_proba('classes/LR_BAG_L3_FULL', t))) AS p FROM stack AS t) s;

-- forged rows: another order of inputs than the image says
UPDATE ag_member SET inputs = jsonb_build_array(inputs -> 1, inputs -> 0) WHERE name = 'LR_BAG_L2/S1F1' AND inputs IS NOT NULL;
\c
SET client_min_messages = warning;
SELECT ag_predict('stack/LR_BAG_L2', t) FROM stack AS t LIMIT 1;

SELECT ag_fit('stack', 'y', '{"name": "no", "num_stack_levels": 1}');
SELECT ag_fit('stack', 'y', '{"name": "no", "num_bag_folds": 3, "num_stack_levels": 9}');

-- levels that the folds are too few for: a warning, which stays with the model
SELECT ag_fit('stack', 'y', '{"name": "few", "verbosity": 1, "num_bag_folds": 2, "num_stack_levels": 1, "hyperparameters": {"LR": {}}}');
SELECT ag_info('few') -> 'warnings' AS warnings, max(stack_level) AS levels FROM ag_leaderboard('few');

-- a limit on the time that predicting takes: one that anything keeps, one that nothing keeps
SELECT ag_fit('stack', 'y', '{"name": "slow", "verbosity": 0, "num_bag_folds": 3, "infer_limit": 10, "hyperparameters": {"GBM": {"num_boost_round": 30}, "LR": {}}}');
SELECT count(*) AS members FROM ag_leaderboard('slow');
\set VERBOSITY terse
SELECT ag_fit('stack', 'y', '{"name": "none", "verbosity": 0, "infer_limit": 1e-12, "hyperparameters": {"LR": {}}}');
SELECT ag_fit('stack', 'y', '{"name": "none", "infer_limit": 0}');
SELECT ag_fit('stack', 'y', '{"name": "none", "dynamic_stacking": true}');
SELECT ag_fit('stack', 'y', '{"name": "none", "num_bag_folds": 3, "ds_args": {"holdout_frac": 0.2}}');

-- little time: what there is predicts, or the error says that there was too little
SELECT ag_fit('stack', 'y', '{"name": "second", "verbosity": 0, "presets": "best", "num_stack_levels": 1, "time_limit": 1}');
SELECT count(*) AS rows, count(ag_predict('second', t)) AS predicted FROM stack AS t;
SELECT ag_fit('stack', 'c', '{"name": "ten", "verbosity": 0, "num_bag_folds": 3, "dynamic_stacking": true, "time_limit": 10, "hyperparameters": {"GBM": {"num_boost_round": 20}, "LR": {}}}');
SELECT count(*) AS rows, count(ag_predict_class('ten', t)) AS predicted FROM stack AS t;
DO $$ BEGIN
    PERFORM ag_fit('stack', 'y', '{"name": "none", "verbosity": 0, "num_bag_folds": 3, "num_stack_levels": 1, "time_limit": 0.002}');
EXCEPTION WHEN query_canceled THEN RAISE WARNING '%', substring(sqlerrm FROM 'time limit of [0-9.]+ s'); END $$;

SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE stack;
