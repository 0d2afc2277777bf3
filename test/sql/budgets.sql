-- what a set of models makes of little time and of much
SET client_min_messages = warning;
CREATE TABLE steps AS SELECT i % 40 AS x, (i * 7) % 31 AS z, 'k' || i % 3 AS k, (i % 40) * 2.0 + (i * 7) % 31 AS y FROM generate_series(1, 200) i;
-- little: the linear model first, where all else is as it stands; KNN only by its name
SELECT ag_fit('steps', 'y', '{"name": "short", "verbosity": 0, "time_limit": 200, "hyperparameters": "toy"}');
SELECT model FROM ag_leaderboard('short') ORDER BY fit_order LIMIT 3;
SELECT ag_fit('steps', 'y', '{"name": "short_again", "replay": "short", "verbosity": 0}');
SELECT model FROM ag_leaderboard('short_again') ORDER BY fit_order LIMIT 3;
SELECT count(*) FILTER (WHERE ag_predict('short', t) = ag_predict('short_again', t)) AS same FROM steps AS t;
SELECT ag_fit('steps', 'y', '{"name": "plain", "verbosity": 0, "time_limit": 300, "hyperparameters": "toy"}');
SELECT model FROM ag_leaderboard('plain') ORDER BY fit_order LIMIT 3;
SELECT name, ag_fit('steps', 'y', jsonb_build_object('name', 'no', 'verbosity', 0, 'dry_run', true, 'hyperparameters', 'extreme', 'time_limit', seconds))::jsonb @? '$.models[*] ? (@.family == "KNN")' AS knn
FROM (VALUES ('short', 60), ('long', 3000)) AS t (name, seconds);
SELECT ag_fit('steps', 'y', '{"name": "near", "verbosity": 0, "time_limit": 200, "included_model_types": ["KNN"]}');
SELECT model FROM ag_leaderboard('near');
-- much: a second set of folds of what the best model combines, and the same from the plan
SELECT ag_fit('steps', 'y', '{"name": "long", "verbosity": 0, "time_limit": 900, "hyperparameters": "toy", "auto_stack": true, "num_stack_levels": 0, "excluded_model_types": ["NN_TORCH"]}');
SELECT count(*) > 0 AS twice, bool_and(jsonb_array_length(b.inputs) = 16) AS whole FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor, jsonb_array_elements(m.inputs) AS i, ag_member b
WHERE p.name = 'long' AND m.name = 'WeightedEnsemble_L2' AND b.predictor = m.predictor AND b.name = i ->> 'model';
SELECT ag_fit('steps', 'y', '{"name": "long_again", "replay": "long", "verbosity": 0}');
SELECT count(*) FILTER (WHERE ag_predict('long', t) = ag_predict('long_again', t)) AS same FROM steps AS t;
SELECT (SELECT array_agg(model ORDER BY fit_order) FROM ag_leaderboard('long')) = (SELECT array_agg(model ORDER BY fit_order) FROM ag_leaderboard('long_again')) AS alike;
SELECT ag_fit('steps', 'y', '{"name": "once", "verbosity": 0, "time_limit": 900, "hyperparameters": "toy", "auto_stack": true, "num_bag_sets": 1, "num_stack_levels": 0, "included_model_types": ["GBM", "LR"]}');
SELECT count(*) FILTER (WHERE m.name LIKE '%/S2F%') AS second_sets FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor WHERE p.name = 'once';
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE steps;
