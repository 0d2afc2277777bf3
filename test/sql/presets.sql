-- presets: bundles of options, and the sets of models behind them
SET client_min_messages = warning;
CREATE TABLE rooms AS SELECT i % 40 AS x, (i * 7) % 31 AS z, 'k' || i % 3 AS k, (i % 40) * 2.0 + (i * 7) % 31 AS y FROM generate_series(1, 300) i;
SELECT ag_fit('rooms', 'y', '{"name": "best", "verbosity": 0, "presets": "best", "time_limit": 4, "included_model_types": ["GBM", "LR"]}');
SELECT model, stack_level FROM ag_leaderboard('best') WHERE model = 'LR_BAG_L1' OR model LIKE 'Weighted%' ORDER BY fit_order;
SELECT time_limit, count(fold) >= 16 AS bags FROM ag_predictor p JOIN ag_member m ON m.predictor = p.id WHERE p.name = 'best' GROUP BY time_limit;
SELECT ag_fit('rooms', 'y', '{"name": "good", "verbosity": 0, "presets": "good_quality", "time_limit": 4, "hyperparameters": {"GBM": {"num_boost_round": 50}, "LR": {}}}');
SELECT model, can_infer FROM ag_leaderboard('good') ORDER BY fit_order;
SELECT best_model LIKE '%\_FULL' AS refitted FROM ag_models WHERE name = 'good';
SELECT count(*) FILTER (WHERE ag_predict('good', t) IS NOT NULL) AS predicted FROM rooms AS t;
SELECT ag_fit('rooms', 'y', '{"name": "deploy", "verbosity": 0, "presets": ["good", "optimize_for_deployment"], "time_limit": 4, "hyperparameters": {"GBM": {"num_boost_round": 50}, "LR": {}}}');
SELECT bool_and(model LIKE '%\_FULL') AS only_the_best FROM ag_leaderboard('deploy');
SELECT ag_fit('rooms', 'y', '{"name": "plain", "verbosity": 0, "presets": "interpretable"}');
SELECT model FROM ag_leaderboard('plain') ORDER BY fit_order;
SELECT ag_fit('rooms', 'y', '{"name": "toy", "verbosity": 0, "hyperparameters": "toy"}');
SELECT count(*) FROM ag_leaderboard('toy');
-- twice the configurations of best
SELECT preset, jsonb_array_length(ag_fit('rooms', 'y', jsonb_build_object('name', 'no', 'verbosity', 0, 'dry_run', true, 'num_stack_levels', 0, 'presets', preset))::jsonb -> 'models') AS models FROM unnest(ARRAY['bq', 'eq']) preset;
SELECT ag_fit('rooms', 'y', '{"name": "no", "presets": "bst"}');
SELECT ag_fit('rooms', 'y', '{"name": "no", "presets": "tabarena"}');
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE rooms;
