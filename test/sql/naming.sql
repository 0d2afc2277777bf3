-- ag_args: what models are called, in which order they are fitted, and what they are for
SET client_min_messages = warning;
CREATE TABLE rungs AS SELECT i % 40 AS x, (i * 7) % 31 AS z, 'k' || i % 3 AS k, (i % 40) * 2.0 + (i * 7) % 31 AS y FROM generate_series(1, 300) i;
SELECT ag_fit('rungs', 'y', '{"name": "named", "verbosity": 0, "hyperparameters": {"LR": {"ag_args": {"priority": 100}},
    "GBM": [{"num_boost_round": 20}, {"num_boost_round": 30, "ag_args": {"name_suffix": "_more", "problem_types": ["regression"]}}, {"num_boost_round": 5, "ag_args": {"name": "never", "problem_types": ["binary", "multiclass"]}}]}}');
SELECT model, fit_order FROM ag_leaderboard('named') ORDER BY fit_order;
SELECT model, family, message FROM ag_model_failures('named');
SELECT count(ag_predict('named/GBM_more', t)) FROM rungs AS t;
-- bags and levels: one only on the first, one that nobody looks at
SELECT ag_fit('rungs', 'y', '{"name": "levels", "verbosity": 0, "num_bag_folds": 3, "num_stack_levels": 1, "ag_args": {"name_prefix": "my."}, "hyperparameters":
    {"LR": {"ag_args": {"valid_base": false}}, "GBM": [{"num_boost_round": 20}, {"num_boost_round": 30, "ag_args": {"name_suffix": "-b", "valid_stacker": false}}]}}');
SELECT model FROM ag_leaderboard('levels') ORDER BY fit_order;
SELECT m.name, (SELECT string_agg(i.name, ', ' ORDER BY i.name) FROM jsonb_array_elements(m.inputs) AS n JOIN ag_member i ON i.predictor = m.predictor AND i.name = n ->> 'model') AS looks_at
FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor WHERE p.name = 'levels' AND m.name = 'my.GBM_BAG_L2/S1F1';
-- the same again from its plan
SELECT ag_fit('rungs', 'y', '{"name": "again", "replay": "levels", "verbosity": 0}');
SELECT count(*) FILTER (WHERE ag_predict('levels', t) = ag_predict('again', t)) AS same FROM rungs AS t;
-- nothing is left, a name that is another's, a misspelt argument, one that isn't offered
SELECT ag_fit('rungs', 'y', '{"name": "no", "verbosity": 0, "ag_args": {"problem_types": ["quantile"]}, "hyperparameters": {"LR": {}}}');
SELECT ag_fit('rungs', 'y', '{"name": "no", "verbosity": 0, "hyperparameters": {"LR": {"ag_args": {"name": "WeightedEnsemble_L2"}}}}');
SELECT ag_fit('rungs', 'y', '{"name": "no", "verbosity": 0, "hyperparameters": {"LR": {"ag_args": {"prority": 3}}}}');
SELECT ag_fit('rungs', 'y', '{"name": "no", "verbosity": 0, "ag_args": {"name_bag_suffix": "_B"}}');
SELECT name, type, supported FROM ag_options() WHERE name = 'ag_args';
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE rungs;
