-- the leaderboard: AutoGluon's columns, best first
SET client_min_messages = warning;
CREATE TABLE lb AS SELECT i % 50 AS x, (i * 7) % 31 AS z, (i % 50) * 2.0 + (i * 7) % 31 AS y FROM generate_series(1, 500) i;
SELECT ag_fit('lb', 'y', '{"name": "lb", "verbosity": 0, "hyperparameters": {"GBM": [{"num_boost_round": 40}, {"num_leaves": 4, "num_boost_round": 5}]}}');

CREATE TABLE board AS SELECT *, row_number() OVER () AS place FROM ag_leaderboard('lb');
SELECT column_name FROM information_schema.columns WHERE table_name = 'board' AND column_name <> 'place' ORDER BY ordinal_position;
SELECT model, stack_level, can_infer, eval_metric, device, num_gpus, num_cpus >= 1 AS has_cpus FROM board ORDER BY model COLLATE "C";
SELECT bool_and(score_val <= 0) AS errors_are_negative, bool_and(fit_time >= fit_time_marginal) AS fit_time, bool_and(pred_time_val >= pred_time_val_marginal) AS pred_time,
    count(score_test) AS score_test, count(pred_time_test) AS pred_time_test, count(DISTINCT fit_order) = count(*) AS fit_order
FROM board;
SELECT bool_and(score_val <= before) AS best_first FROM (SELECT score_val, lag(score_val) OVER (ORDER BY place) AS before FROM board) s;
SELECT count(*) AS as_in_ag_models FROM board JOIN ag_models ON best_model = model AND board.score_val = ag_models.score_val;

-- with test data: scored there too, and best first by that
DROP TABLE board;
CREATE TABLE board AS SELECT *, row_number() OVER () AS place FROM ag_leaderboard('lb', 'SELECT * FROM lb WHERE x < 30');
SELECT bool_and(score_test <= 0) AS scored, bool_and(pred_time_test > 0) AS timed, bool_and(pred_time_test >= pred_time_test_marginal) AS marginal FROM board;
SELECT bool_and(score_test <= before) AS best_first FROM (SELECT score_test, lag(score_test) OVER (ORDER BY place) AS before FROM board) s;
SELECT bool_and(abs(score_test + sql) < 1e-9) AS as_sql_has_it
FROM board, LATERAL (SELECT sqrt(avg((ag_predict('lb/' || model, lb) - y) ^ 2)) AS sql FROM lb WHERE x < 30) s;

SELECT count(*) FROM ag_leaderboard(NULL);
SELECT count(*) FROM ag_leaderboard('nobody');
SELECT count(*) FROM ag_leaderboard('lb', 'nowhere');
BEGIN READ ONLY;
SELECT count(*) > 0 AS read_only FROM ag_leaderboard('lb', 'lb');
COMMIT;
SELECT ag_drop('lb');
DROP TABLE lb, board;
