-- a fit repeated exactly, though time or a limit had cut it
SET client_min_messages = warning;
CREATE TABLE re AS SELECT i AS id, i % 50 AS x, 'k' || i % 5 AS z, timestamptz '2024-01-01 00:30+00' + i * interval '7 hours' AS at, ((i % 50) - 25) ^ 2 + (i * 7) % 31 AS y FROM generate_series(1, 500) i;
CREATE FUNCTION re_same(a text, b text) RETURNS TABLE (members bigint, parts bigint, same_parts bigint, same_scores boolean) LANGUAGE sql AS $$
    WITH p AS (SELECT (SELECT id FROM ag_predictor WHERE name = $1 AND version = 1) AS a, (SELECT id FROM ag_predictor WHERE name = $2 AND version = 1) AS b),
    x AS (SELECT m.name, t.part, t.data FROM p, ag_member_part t LEFT JOIN ag_member m ON m.predictor = t.predictor AND m.ordinal = t.member WHERE t.predictor = p.a),
    y AS (SELECT m.name, t.part, t.data FROM p, ag_member_part t LEFT JOIN ag_member m ON m.predictor = t.predictor AND m.ordinal = t.member WHERE t.predictor = p.b)
    SELECT (SELECT count(*) FROM p, ag_member m WHERE m.predictor = p.a), (SELECT count(*) FROM x),
        (SELECT count(*) FROM x JOIN y ON x.name IS NOT DISTINCT FROM y.name AND x.part = y.part AND x.data = y.data),
        (SELECT array_agg((m.name, m.score_val, m.inputs) ORDER BY ordinal) FROM p, ag_member m WHERE m.predictor = p.a) =
        (SELECT array_agg((m.name, m.score_val, m.inputs) ORDER BY ordinal) FROM p, ag_member m WHERE m.predictor = p.b) $$;

-- a booster cut by its own limit, one that failed, bags, refits, the session's time zone
SET timezone = 'Asia/Tokyo';
SELECT ag_fit('re', 'y', '{"name": "re_a", "verbosity": 0, "num_bag_folds": 3, "num_bag_sets": 2, "refit_full": true, "random_state": 7,
    "hyperparameters": {"GBM": [{"num_boost_round": 100000, "learning_rate": 0.0001, "num_leaves": 4, "ag_args_fit": {"max_time_limit": 0.3}}, {"ag_args_fit": {"max_time_limit": 1e-9}}], "LR": {}, "XT": {"n_estimators": 7}}}');
SELECT count(*) AS failed FROM ag_model_failures('re_a');
SET timezone = 'UTC';
SELECT ag_fit('SELECT * FROM re ORDER BY x', 'y', '{"name": "re_b", "replay": "re_a@1", "verbosity": 0, "num_cpus": 1}');
SELECT members > 8 AS members, parts > 5 AS parts, same_parts = parts AS all_same, same_scores FROM re_same('re_a', 're_b');
SELECT options ? 'replay' AS replay, options -> 'random_state' AS seed, options -> 'num_bag_sets' AS sets FROM ag_predictor WHERE name = 're_b';
-- and the repeated one once more
SELECT ag_fit('re', 'y', '{"name": "re_c", "replay": "re_b", "verbosity": 0}');
SELECT same_parts = parts AS all_same, same_scores FROM re_same('re_a', 're_c');
-- a holdout, stacked bags and classes
SELECT ag_fit('re', 'z', '{"name": "re_d", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20}, "RF": {"n_estimators": 5}, "NN_TORCH": {"num_epochs": 3}}}');
SELECT ag_fit('re', 'z', '{"name": "re_e", "verbosity": 0, "replay": "re_d"}');
SELECT same_parts = parts AS all_same, same_scores FROM re_same('re_d', 're_e');
SELECT ag_fit('re', 'y', '{"name": "re_f", "verbosity": 0, "num_bag_folds": 3, "num_stack_levels": 1, "hyperparameters": {"GBM": {"num_boost_round": 20}, "LR": {}}}');
SELECT ag_fit('re', 'y', '{"name": "re_g", "verbosity": 0, "replay": "re_f@1"}');
SELECT same_parts = parts AS all_same, same_scores FROM re_same('re_f', 're_g');

-- what the clock decided is part of the plan: rounds, folds that were left out, schedules of nets, searches of linear models, what stackers look at
CREATE TABLE re_cut AS SELECT i % 97 AS x, i % 13 AS z, (i * 7919) % 1009 / 1009.0 AS n, 'k' || i % 5 AS k, (i % 97) * 2.0 + i % 13 * ((i * 31) % 7) AS y,
    CASE WHEN (i % 97 + i % 13) % 4 < 2 THEN 'a' ELSE 'b' END AS c FROM generate_series(1, 3000) i;
SELECT ag_fit('re_cut', 'y', '{"name": "re_h", "verbosity": 0, "time_limit": 2.5, "num_bag_folds": 4, "num_stack_levels": 1,
    "hyperparameters": {"GBM": {"learning_rate": 0.003, "ag.early_stop": null}, "LR": {}, "NN_TORCH": {}, "FASTAI": {}}}');
SELECT ag_fit('re_cut', 'y', '{"name": "re_i", "verbosity": 0, "replay": "re_h"}');
SELECT same_parts = parts AS all_same, same_scores FROM re_same('re_h', 're_i');
SELECT ag_fit('re_cut', 'c', '{"name": "re_j", "verbosity": 0, "time_limit": 1.5, "hyperparameters": {"LR": {"penalty": "L1", "tol": 1e-12}, "REALMLP": {}, "NN_TORCH": {"ag.early_stop": null}, "RF": {"n_estimators": 5000}}}');
SELECT ag_fit('re_cut', 'c', '{"name": "re_k", "verbosity": 0, "replay": "re_j"}');
SELECT same_parts = parts AS all_same, same_scores FROM re_same('re_j', 're_k');
SELECT bool_or(plan #> '{replay,models}' @? '$[*].cuts') AS cut FROM ag_predictor WHERE name = 're_j';
SELECT ag_fit('re_cut', 'c', '{"name": "re_l", "verbosity": 0, "replay": "re_k"}');
SELECT same_parts = parts AS all_same, same_scores FROM re_same('re_j', 're_l');
DROP TABLE re_cut;

-- what can't be
SELECT ag_fit('re', 'y', '{"replay": "re_a", "time_limit": 10}');
SELECT ag_fit('re', 'y', '{"replay": "re_a", "hyperparameters": "light"}');
SELECT ag_fit('re', 'y', '{"replay": 7}');
SELECT ag_fit('re', 'y', '{"replay": "nobody@1"}');
SELECT ag_fit('re', 'y', '{"replay": "re_a/GBM_BAG_L1"}');
UPDATE ag_predictor SET plan = jsonb_set(plan, '{replay,refused}', '"time cut NN_TORCH short"') WHERE name = 're_d';
SELECT ag_fit('re', 'z', '{"replay": "re_d", "name": "re_no"}');
UPDATE ag_predictor SET plan = jsonb_set(plan, '{replay}', '{"models": [{"name": 3}]}') WHERE name = 're_d';
SELECT ag_fit('re', 'z', '{"replay": "re_d", "name": "re_no"}');
UPDATE ag_predictor SET plan = plan - 'replay' WHERE name = 're_d';
SELECT ag_fit('re', 'z', '{"replay": "re_d", "name": "re_no"}');
CREATE ROLE re_reader;
GRANT SELECT ON re TO re_reader;
SELECT ag_grant('re_a', 're_reader');
SET ROLE re_reader;
SELECT ag_fit('re', 'y', '{"replay": "re_a", "name": "re_no"}');
RESET ROLE;
SELECT ag_drop(name) FROM ag_models WHERE name LIKE 're\_%' ORDER BY name;
DROP FUNCTION re_same;
DROP TABLE re;
DROP ROLE re_reader;
