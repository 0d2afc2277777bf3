-- what a fit went without, and how its models learnt
SET client_min_messages = warning;
CREATE TABLE rp AS SELECT i AS id, i % 50 AS x, (i * 7) % 31 AS z, (i % 50) * 2.0 + (i * 7) % 31 AS y,
    CASE WHEN i % 50 + i % 9 > 25 THEN 'hi' ELSE 'lo' END AS c FROM generate_series(1, 600) i;

-- a model that can't be fitted is left out with its reason, and the others are there
SELECT ag_fit('rp', 'y', '{"name": "rp_some", "verbosity": 0, "hyperparameters": {"GBM": [{"num_boost_round": 20}, {"ag_args_fit": {"max_time_limit": 1e-9}}],
    "NN_TORCH": {"ag_args_fit": {"max_time_limit": 1e-9}}}}');
SELECT model, family, reason, message, seconds >= 0 AS timed FROM ag_model_failures('rp_some');
SELECT model FROM ag_leaderboard('rp_some') ORDER BY model COLLATE "C";
SELECT value FROM ag_fit_summary('rp_some') WHERE item = 'models left out';
-- of a fit where all went well there is nothing to say
SELECT ag_fit('rp', 'c', '{"name": "rp_all", "verbosity": 0, "num_bag_folds": 3, "eval_metric": "log_loss",
    "hyperparameters": {"GBM": {"num_boost_round": 300}, "NN_TORCH": {"num_epochs": 4}, "LR": {}}}');
SELECT count(*) AS failures FROM ag_model_failures('rp_all');
SELECT count(*) AS summary FROM ag_fit_summary('rp_all') WHERE item = 'models left out';

-- too little memory for one of two models
CREATE TABLE rp_mem AS SELECT i * 7919 % 10007 AS a, i * 31 % 997 AS b, (i * 7919 % 10007) * (i * 31 % 997) % 1009 AS y FROM generate_series(1, 15000) i;
SELECT ag_fit('rp_mem', 'y', '{"name": "rp_mem", "verbosity": 0, "memory_limit": 0.015, "num_cpus": 1, "hyperparameters": {"GBM": {"num_boost_round": 5}, "RF": {"n_estimators": 30}}}');
SELECT model, reason FROM ag_model_failures('rp_mem');
SELECT model FROM ag_leaderboard('rp_mem');
SELECT ag_drop('rp_mem');
DROP TABLE rp_mem;

-- curves: every fold of what grows in rounds, ascending, thinned to a hundred points or so
SELECT model, count(DISTINCT fold) AS folds, min(fold) AS first_fold, min(metric) AS metric, min(iteration) AS first, bool_and(val > 0) AS losses,
    max(n) <= 128 AS thinned FROM (SELECT *, count(*) OVER (PARTITION BY model, fold) AS n FROM ag_learning_curves('rp_all')) s GROUP BY model ORDER BY model;
SELECT bool_and(iteration > before) AS ascending FROM (SELECT iteration, lag(iteration) OVER (PARTITION BY model, fold ORDER BY ordinality) AS before
    FROM ag_learning_curves('rp_all') WITH ORDINALITY) s;
SELECT model, fold, metric, count(*) FROM ag_learning_curves('rp_some') GROUP BY 1, 2, 3;
-- the best of the curve is the model's score, where no point was dropped
SELECT abs(-l.score_val - c.best) < 1e-4 AS as_on_the_leaderboard
FROM ag_leaderboard('rp_some') l, (SELECT min(val) AS best FROM ag_learning_curves('rp_some')) c WHERE l.model = 'GBM';
SELECT DISTINCT model, fold FROM ag_learning_curves('rp_all/GBM_BAG_L1') ORDER BY fold;
SELECT DISTINCT model, fold FROM ag_learning_curves('rp_all@1/GBM_BAG_L1/S1F2');
SELECT count(*) FROM ag_learning_curves('rp_all/LR_BAG_L1');
SELECT count(*) FROM ag_learning_curves('nobody');

-- who may only predict sees how the models learnt, but not what the options asked for
CREATE ROLE rp_reader;
SELECT ag_grant('rp_some', 'rp_reader');
SET ROLE rp_reader;
SELECT count(*) AS failures FROM ag_model_failures('rp_some');
SELECT count(*) > 0 AS curves FROM ag_learning_curves('rp_some');
SELECT count(*) FROM ag_learning_curves('rp_all');
RESET ROLE;

-- damaged rows are an error, no crash
UPDATE ag_member SET history = '[1]' WHERE name = 'GBM';
SELECT count(*) FROM ag_learning_curves('rp_some');
UPDATE ag_member SET history = '{"metric": "x", "iteration": [1, "a", -5, 1e30, 2], "val": [0.5]}' WHERE name = 'GBM';
SELECT * FROM ag_learning_curves('rp_some');
SELECT ag_drop('rp_some'), ag_drop('rp_all');
DROP ROLE rp_reader;
DROP TABLE rp;

-- out-of-fold predictions: the score is theirs
CREATE TABLE oo AS SELECT i % 50 AS x, (i * 7) % 31 AS z, ((i % 50) - 25) ^ 2 + (i * 7) % 31 AS y, CASE WHEN i % 50 + i % 9 > 25 THEN 'hi' ELSE 'lo' END AS c FROM generate_series(1, 300) i;
SELECT ag_fit('oo', 'y', '{"name": "oo_bag", "verbosity": 0, "num_bag_folds": 3, "hyperparameters": {"GBM": {"num_boost_round": 20}, "RF": {"n_estimators": 10}, "LR": {}}, "refit_full": true, "set_best_to_refit_full": true}');
SELECT count(*), abs(sqrt(avg((label::float8 - prediction::float8) ^ 2)) + (SELECT max(score_val) FROM ag_leaderboard('oo_bag'))) < 1e-4 AS the_score, bool_or(proba IS NOT NULL) AS proba, max("row") AS last FROM ag_predict_oof('oo_bag');
SELECT ag_fit('SELECT x, z, c FROM oo', 'c', '{"name": "oo_cls", "verbosity": 0, "eval_metric": "log_loss", "hyperparameters": {"GBM": {"num_boost_round": 20}, "LR": {}}}');
SELECT count(*), abs(avg(-ln((proba ->> label)::float8)) + (SELECT score_val FROM ag_models WHERE name = 'oo_cls')) < 1e-4 AS the_score, bool_and(((proba ->> prediction)::float8) >= 0.5) AS prediction FROM ag_predict_oof('oo_cls@1');
SELECT ag_fit('oo', 'y', '{"name": "oo_small", "verbosity": 0, "save_space": true, "hyperparameters": {"GBM": {"num_boost_round": 20}}}');
SELECT count(*) FROM ag_predict_oof('oo_small');
SELECT count(*) FROM ag_learning_curves('oo_small');
SELECT count(*) FROM ag_predict_oof('oo_bag/GBM_BAG_L1');
CREATE ROLE oo_reader;
SELECT ag_grant('oo_bag', 'oo_reader');
SET ROLE oo_reader;
SELECT count(*) FROM ag_predict_oof('oo_bag');
RESET ROLE;
-- damaged bytes: the checksum, and the contents where that is right
UPDATE ag_member_part SET data = substr(data, 1, length(data) - 1) WHERE member = 2147483647 AND predictor = (SELECT id FROM ag_predictor WHERE name = 'oo_bag');
SELECT count(*) FROM ag_predict_oof('oo_bag');
UPDATE ag_member_part t SET data = o.data, checksum = o.checksum FROM ag_member_part o WHERE t.member = 2147483647 AND t.predictor = (SELECT id FROM ag_predictor WHERE name = 'oo_bag')
    AND o.member = 2147483647 AND o.predictor = (SELECT id FROM ag_predictor WHERE name = 'oo_cls');
SELECT count(*) FROM ag_predict_oof('oo_bag');
SELECT ag_drop(name) FROM ag_models WHERE name LIKE 'oo\_%' ORDER BY name;
DROP ROLE oo_reader;
DROP TABLE oo;
