-- bags of models: names, children, scores of every row, prediction, small and unbalanced tables
SET client_min_messages = warning;
CREATE TABLE bag AS SELECT i % 50 AS x, (i * 7) % 31 AS z, 'k' || i % 3 AS k, (i % 50) * 2.0 + (i * 7) % 31 AS y
FROM generate_series(1, 300) i;

SELECT ag_fit('bag', 'y', '{"name": "bag", "verbosity": 0, "num_bag_folds": 4, "time_limit": 60,
    "hyperparameters": {"GBM": [{"num_boost_round": 40}, {"num_boost_round": 20}], "LR": {}}}');
SELECT model, stack_level, can_infer, fit_order, score_val < 0 AS scored, fit_time >= fit_time_marginal AS fit_time,
    pred_time_val >= pred_time_val_marginal AS pred_time, fit_time_marginal > 0 AS own
FROM ag_leaderboard('bag') ORDER BY fit_order;
SELECT name, family, fold, score_val IS NULL AS unscored, jsonb_array_length(inputs) AS inputs FROM ag_member ORDER BY ordinal;
SELECT jsonb_object_keys(ag_info('bag') -> 'models') AS models, ag_info('bag') #> '{plan,options,num_bag_folds}' AS folds;
SELECT ag_info('bag') #> '{models,GBM_BAG_L1,children}' AS children;

-- a bag is the mean of its children; each can be asked
SELECT bool_and(abs(ag_predict('bag/GBM_BAG_L1', t) - (ag_predict('bag/GBM_BAG_L1/S1F1', t) + ag_predict('bag/GBM_BAG_L1/S1F2', t) +
    ag_predict('bag/GBM_BAG_L1/S1F3', t) + ag_predict('bag/GBM_BAG_L1/S1F4', t)) / 4) < 1e-9) AS mean
FROM bag AS t;
SELECT sqrt(avg((ag_predict('bag', t) - y) ^ 2)) < 1 AS predicts FROM bag AS t;
SELECT bool_and(score_test < 0) AS scored, bool_and(pred_time_test >= pred_time_test_marginal) AS marginal FROM ag_leaderboard('bag', 'bag');

-- the order of the rows on disk doesn't matter
CREATE TABLE gab AS SELECT * FROM bag ORDER BY z, x DESC, k;
SELECT ag_fit('gab', 'y', '{"name": "gab", "verbosity": 0, "num_bag_folds": 4, "time_limit": 60,
    "hyperparameters": {"GBM": [{"num_boost_round": 40}, {"num_boost_round": 20}], "LR": {}}}');
SELECT count(*) FILTER (WHERE ag_predict('bag', t) = ag_predict('gab', t)) AS same, count(*) FROM bag AS t;

-- repeats; AutoGluon's rule for folds; columns of any name
SELECT ag_fit('bag', 'y', '{"name": "sets", "verbosity": 0, "num_bag_folds": 2, "num_bag_sets": 3, "hyperparameters": {"LR": {}}}');
SELECT count(*) AS children, max(fold) FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor WHERE p.name = 'sets' AND fold IS NOT NULL;
SELECT ag_fit('bag', 'y', '{"name": "auto", "verbosity": 0, "auto_stack": true, "hyperparameters": {"LR": {}}}');
SELECT count(*) AS children FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor WHERE p.name = 'auto' AND fold IS NOT NULL;
CREATE TABLE odd AS SELECT i % 17 AS "a:b", i % 13 AS "[x]", i % 7 AS "u""v", i % 4 AS "lt<gt>", (i % 13) * 2.0 + i % 7 AS y
FROM generate_series(1, 300) i;
SELECT ag_fit('odd', 'y', '{"name": "odd", "verbosity": 0, "num_bag_folds": 2, "hyperparameters": {"GBM": {}, "KNN": {}, "LR": {}}, "time_limit": 20}');
SELECT corr(ag_predict('odd', t), y) > 0.9 AS predicts FROM odd AS t;

-- 12 of 12,000: every fold trains on some of them
CREATE TABLE rare AS SELECT (i * 7919) % 10007 AS a, (i * 31) % 97 AS b, CASE WHEN i % 1000 = 0 THEN 1e6 ELSE 0 END + (i * 13) % 11 AS sig,
    CASE WHEN i % 1000 = 0 THEN 'fraud' ELSE 'fine' END AS y FROM generate_series(1, 12000) i;
SELECT ag_fit('rare', 'y', '{"name": "rare", "verbosity": 0, "eval_metric": "roc_auc", "num_bag_folds": 4,
    "hyperparameters": {"GBM": {"num_boost_round": 50}, "LR": {}}}');
SELECT count(*), bool_and(score_val BETWEEN 0 AND 1) AS finite, max(score_val) > 0.99 AS good FROM ag_leaderboard('rare');

-- what can't be
SELECT ag_fit('bag', 'y', '{"name": "no", "num_bag_folds": 1}');
SELECT ag_fit('bag', 'y', '{"name": "no", "num_bag_folds": 1000}');
SELECT ag_fit('bag', 'y', '{"name": "no", "num_bag_sets": 2}');
SELECT ag_fit('bag', 'y', '{"name": "no", "num_bag_folds": 4, "ag_args_ensemble": {"fold_fitting": "x"}}');

SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE bag, gab, odd, rare;
