-- models fitted again on all rows
SET client_min_messages = warning;
CREATE TABLE again AS SELECT i % 50 AS x, (i * 7) % 31 AS z, sin(i % 50) * 20 + (i * 7) % 31 AS y FROM generate_series(1, 400) i;
SELECT ag_fit('again', 'y', '{"name": "all", "verbosity": 0, "num_bag_folds": 3, "refit_full": true, "set_best_to_refit_full": true,
    "hyperparameters": {"GBM": {"num_boost_round": 100}, "LR": {}}}');
SELECT model, stack_level, can_infer, score_val IS NULL AS unscored, fit_order FROM ag_leaderboard('all') ORDER BY fit_order;
SELECT best_model, score_val < 0 AS scored FROM ag_models WHERE name = 'all';
SELECT bool_and(ag_predict('all', t) = ag_predict('all/' || best_model, t)) AS best FROM again AS t, ag_models WHERE name = 'all';
SELECT sqrt(avg((ag_predict('all/GBM_BAG_L1_FULL', t) - y) ^ 2)) < 5 AS predicts FROM again AS t;

-- the children of what was fitted again needn't be kept
SELECT ag_fit('again', 'y', '{"name": "light", "verbosity": 0, "num_bag_folds": 3, "refit_full": true, "set_best_to_refit_full": true,
    "ag_args_ensemble": {"save_bag_folds": false}, "hyperparameters": {"GBM": {"num_boost_round": 100}, "LR": {}}}');
SELECT model, can_infer, fit_time_marginal > 0 AS timed FROM ag_leaderboard('light') ORDER BY fit_order;
SELECT count(score_test) AS tested FROM ag_leaderboard('light', 'again') WHERE can_infer;
SELECT count(*) FILTER (WHERE ag_predict('light', t) = ag_predict('all', t)) AS same FROM again AS t;
SELECT ag_predict('light/GBM_BAG_L1', t) FROM again AS t LIMIT 1;
SELECT jsonb_object_keys(ag_info('light') -> 'models') AS models;

-- only the best, and what it combines
SELECT ag_fit('again', 'y', '{"name": "best", "verbosity": 0, "keep_only_best": true, "save_space": true,
    "hyperparameters": {"GBM": {"num_boost_round": 100}, "LR": {}}}');
SELECT count(*) = 0 AS none_else FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor
WHERE p.name = 'best' AND m.name <> p.best_model AND p.best_model <> 'WeightedEnsemble_L2';
SELECT count(*) FILTER (WHERE ag_predict('best', t) IS NOT NULL) AS predicted FROM again AS t;

SELECT ag_fit('again', 'y', '{"name": "no", "set_best_to_refit_full": true}');
-- without bags, what the best model combines is trained once more, rows held out included: same names and scores, other bytes
SELECT ag_fit('again', 'y', '{"name": "once", "verbosity": 0, "retrain_full": false, "hyperparameters": {"GBM": {"num_boost_round": 60}, "XT": {"n_estimators": 30}, "LR": {}}}');
SELECT ag_fit('again', 'y', '{"name": "twice", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 60}, "XT": {"n_estimators": 30}, "LR": {}}}');
CREATE FUNCTION again_members(predictor text) RETURNS TABLE (model text, score float8, bytes text) LANGUAGE sql AS $$
    SELECT m.name, m.score_val, md5(string_agg(t.data, NULL ORDER BY t.part)) FROM ag_predictor p JOIN ag_member m ON m.predictor = p.id
    LEFT JOIN ag_member_part t ON t.predictor = p.id AND t.member = m.ordinal WHERE p.name = $1 GROUP BY m.name, m.score_val $$;
SELECT model, a.score = b.score AS same_score, a.bytes <> b.bytes AS trained_again FROM again_members('once') a JOIN again_members('twice') b USING (model) ORDER BY model COLLATE "C";
SELECT name, jsonb_path_query_array(plan, '$.models[*] ? (@.all_rows == true).name') AS on_all_rows FROM ag_predictor WHERE name IN ('once', 'twice') ORDER BY name;
SELECT ag_fit('again', 'y', '{"name": "thrice", "verbosity": 0, "replay": "twice"}');
SELECT count(*) FILTER (WHERE a.bytes = b.bytes) AS same FROM again_members('twice') a JOIN again_members('thrice') b USING (model);
-- tuning data are never trained on
SELECT ag_fit('SELECT * FROM again WHERE x < 40', 'y', '{"name": "tuned", "verbosity": 0, "tuning_data": "SELECT * FROM again WHERE x >= 40", "hyperparameters": {"GBM": {"num_boost_round": 60}, "LR": {}}}');
SELECT jsonb_path_exists(plan, '$.models[*].all_rows') AS on_all_rows FROM ag_predictor WHERE name = 'tuned';
DROP FUNCTION again_members;
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE again;
