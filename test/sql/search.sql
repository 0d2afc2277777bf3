-- searches over hyperparameters: trials are members, within the time limit, the same again
SET client_min_messages = warning;
CREATE TABLE se AS SELECT i % 40 AS x, i % 7 AS z, ((i % 40) - 20) ^ 2 + (i * 7) % 31 AS y FROM generate_series(1, 300) i;
SELECT ag_fit('se', 'y', '{"name": "se_a", "verbosity": 0, "random_state": 3, "num_trials": 5, "hyperparameter_tune_kwargs": "bayes",
    "hyperparameters": {"GBM": {"num_boost_round": 20, "learning_rate": {"space": "real", "lower": 0.02, "upper": 0.3, "log": true}, "num_leaves": {"space": "int", "lower": 4, "upper": 31}, "extra_trees": {"space": "bool"}},
        "LR": {"C": {"space": "categorical", "choices": [0.1, 1, 10], "default": 1}}}}');
SELECT model, score_val IS NOT NULL AS scored FROM ag_leaderboard('se_a') ORDER BY model COLLATE "C";
SELECT bool_and((hyperparameters ->> 'learning_rate')::float BETWEEN 0.02 AND 0.3 AND (hyperparameters ->> 'num_leaves')::int BETWEEN 4 AND 31) AS within, count(DISTINCT hyperparameters) AS different
FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor WHERE p.name = 'se_a' AND m.family = 'GBM';
SELECT hyperparameters ->> 'learning_rate' AS rate, hyperparameters ->> 'num_leaves' AS leaves FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor WHERE p.name = 'se_a' AND m.name = 'GBM/T1';
SELECT count(ag_predict('se_a/GBM/T3', r)) AS predicted FROM se r;
-- the same options, other rows' order and fewer CPUs; and its plan repeated
SELECT ag_fit('SELECT * FROM se ORDER BY x', 'y', '{"name": "se_b", "verbosity": 0, "num_cpus": 1, "random_state": 3, "num_trials": 5, "hyperparameter_tune_kwargs": "bayes",
    "hyperparameters": {"GBM": {"num_boost_round": 20, "learning_rate": {"space": "real", "lower": 0.02, "upper": 0.3, "log": true}, "num_leaves": {"space": "int", "lower": 4, "upper": 31}, "extra_trees": {"space": "bool"}},
        "LR": {"C": {"space": "categorical", "choices": [0.1, 1, 10], "default": 1}}}}');
SELECT ag_fit('se', 'y', '{"name": "se_c", "verbosity": 0, "replay": "se_a@1"}');
SELECT p.name, count(*) AS members, (array_agg((m.name, m.score_val, m.hyperparameters) ORDER BY m.name)) =
    (SELECT array_agg((a.name, a.score_val, a.hyperparameters) ORDER BY a.name) FROM ag_member a JOIN ag_predictor q ON q.id = a.predictor WHERE q.name = 'se_a') AS same
FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor WHERE p.name LIKE 'se\__' GROUP BY p.name ORDER BY p.name;
-- bags, and above them the best trial only
SELECT ag_fit('se', 'y', '{"name": "se_bag", "verbosity": 0, "num_bag_folds": 3, "num_stack_levels": 1, "num_trials": 2, "hyperparameters": {"GBM": {"num_boost_round": 10}}}');
SELECT count(*) FILTER (WHERE model ~ '^GBM/T[12]_BAG_L1$') AS below, count(*) FILTER (WHERE model ~ '^GBM/T[12]_BAG_L2$') AS above FROM ag_leaderboard('se_bag');
SELECT count(DISTINCT model) > 0 AS curves, bool_and(model ~ '^GBM/T') AS named FROM ag_learning_curves('se_bag');
SELECT ag_fit('se', 'y', '{"name": "se_bag2", "verbosity": 0, "replay": "se_bag@1"}');
SELECT count(*) AS members, count(DISTINCT (m.name, m.score_val)) AS different FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor WHERE p.name IN ('se_bag', 'se_bag2') AND m.fold IS NULL;
-- time: the search stops, what is there is kept
CREATE TABLE se_time AS SELECT clock_timestamp() AS at;
SELECT ag_fit('se', 'y', '{"name": "se_short", "verbosity": 0, "time_limit": 2, "num_trials": 150, "hyperparameters": {"GBM": {"num_boost_round": 1000000, "learning_rate": 0.0001, "ag.early_stop": null}}}');
SELECT clock_timestamp() - at < interval '8 s' AS in_time FROM se_time;
SELECT count(*) BETWEEN 1 AND 149 AS some FROM ag_leaderboard('se_short') WHERE model LIKE 'GBM/T%';
-- what is tried where nothing is said
SELECT family, parameter, search_space FROM ag_families() WHERE search_space IS NOT NULL AND family IN ('GBM', 'LR') ORDER BY family, parameter COLLATE "C";
SELECT family FROM ag_families() GROUP BY family HAVING count(search_space) < 2;
SELECT name, supported FROM ag_options() WHERE name IN ('num_trials', 'hyperparameter_tune_kwargs') ORDER BY name;
-- errors
SELECT ag_fit('se', 'y', '{"hyperparameters": {"GBM": {"num_leaves": {"space": "int", "lower": 4, "upper": 31}}}}');
SELECT ag_fit('se', 'y', '{"num_trials": 4, "hyperparameters": {"GBM": {"num_leaves": {"uniform": [4, 31]}}}}');
SELECT ag_fit('se', 'y', '{"hyperparameter_tune_kwargs": {"searcher": "grid"}}');
SELECT ag_fit('se', 'y', '{"num_trials": 4, "hyperparameters": {"GBM": {"num_leaves": {"space": "int", "lower": 4.5, "upper": 31}}}}');
SELECT ag_fit('se', 'y', '{"num_trials": 4, "hyperparameters": {"GBM": {"num_leafs": {"space": "int", "lower": 4, "upper": 31}}}}');
DROP TABLE se, se_time;
SELECT count(ag_drop(name)) AS dropped FROM ag_models WHERE name LIKE 'se\_%';
