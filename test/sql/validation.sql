-- who validates: the latest rows, rows of one's own, weights in scores, classes that are too rare
SET client_min_messages = warning;
CREATE TABLE va AS SELECT i % 50 AS x, (i * 7) % 31 AS z, date '2024-01-01' + i / 5 AS day, CASE WHEN i > 400 THEN 1000 ELSE 0 END + i % 50 AS y,
    CASE i % 10 WHEN 0 THEN 'a' WHEN 1 THEN 'b' ELSE 'c' END AS k, 1 + i % 3 AS w FROM generate_series(1, 500) i;
CREATE FUNCTION va_rows(text) RETURNS text LANGUAGE sql AS $$ SELECT format('%s + %s, %s left out', i #> '{plan,rows,train}', i #> '{plan,rows,validation}', i -> 'rows_left_out') FROM ag_info($1) i $$;
CREATE FUNCTION va_fit(text, text, jsonb, text DEFAULT 'va') RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN ag_fit($4, $2, jsonb_build_object('name', $1, 'verbosity', 0, 'hyperparameters', '{"GBM": {"num_boost_round": 30}}'::jsonb) || $3);
EXCEPTION WHEN OTHERS THEN
    DECLARE detail text; hint text;
    BEGIN
        GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
        RETURN concat_ws(' | ', SQLERRM, NULLIF(detail, ''), NULLIF(hint, ''));
    END;
END $$;

-- the latest fifth: its level is another one, which only time can tell
SELECT va_fit('va_late', 'y', '{"time_column": "Day", "holdout_frac": 0.2, "ignored_columns": "day"}'), va_fit('va_any', 'y', '{"holdout_frac": 0.2, "ignored_columns": ["day"]}');
SELECT va_rows('va_late'), va_rows('va_any');
SELECT l.score_val < -900 AS hard, a.score_val > -600 AS easier FROM ag_models l, ag_models a WHERE l.name = 'va_late' AND a.name = 'va_any';
-- the column stays a feature unless it is ignored
SELECT va_fit('va_time', 'y', '{"time_column": "day"}');
SELECT ag_info('va_time') -> 'features' AS with_it, ag_info('va_late') -> 'features' AS without;
-- days are not torn apart: 13 rows would be two and a half days
SELECT va_fit('va_few', 'y', '{"time_column": "day", "holdout_frac": 0.026}');
SELECT va_rows('va_few');
-- most rows held out: some of the time is the models', however long the last training may take
SELECT va_fit('va_most', 'y', '{"holdout_frac": 0.8}'), va_rows('va_most');
-- folds forward in time: the earliest block has no score
SELECT va_fit('va_bag', 'y', '{"time_column": "day", "num_bag_folds": 4}');
SELECT va_rows('va_bag'), ag_info('va_bag') #> '{models,GBM_BAG_L1,children}' AS children;
SELECT va_fit('va_bag_k', 'k', '{"time_column": "day", "num_bag_folds": 3, "num_bag_sets": 2, "hyperparameters": {"GBM": {"num_boost_round": 10}, "LR": {}, "NN_TORCH": {"num_epochs": 2}, "RF": {"n_estimators": 10}}}');
SELECT count(*) AS fitted FROM ag_leaderboard('va_bag_k') WHERE score_val IS NOT NULL;
-- classes that come late are no reason to fail
SELECT va_fit('va_new', 'k', '{"time_column": "x", "num_bag_folds": 3, "hyperparameters": {"GBM": {"num_boost_round": 10}, "LR": {}, "CAT": {"iterations": 5}, "RF": {"n_estimators": 10}, "KNN": {}, "XGB": {"n_estimators": 5}}}',
    'SELECT i AS x, i % 7 AS z, CASE WHEN i < 60 THEN ''a'' WHEN i < 100 THEN ''b'' ELSE ''c'' END AS k FROM generate_series(1, 150) i');
SELECT count(*) > 3 AS fitted FROM ag_leaderboard('va_new');
-- the order on disk doesn't matter, and NULLs come first
SELECT va_fit('va_null', 'y', '{"time_column": "day", "holdout_frac": 0.1}', 'SELECT x, z, y, NULLIF(day, ''2024-04-09'') AS day FROM va ORDER BY z');
SELECT va_rows('va_null');
SELECT va_fit('va_no', 'y', '{"time_column": "k"}'), va_fit('va_no', 'y', '{"time_column": "y"}'), va_fit('va_no', 'y', '{"time_column": "nope"}'),
    va_fit('va_no', 'y', '{"time_column": "day", "groups": "k"}'), va_fit('va_no', 'y', '{"time_column": "w"}', 'SELECT x, y, 1 AS w FROM va');

-- rows of one's own to validate on: found by name, read as the data are, and by their types as far as they can be
SELECT va_fit('va_tune', 'y', '{"tuning_data": "SELECT y::numeric, z::int8, day, x::int2, k, w FROM va WHERE x < 10", "ignored_columns": "day"}', 'SELECT * FROM va WHERE x >= 10');
SELECT va_rows('va_tune');
SELECT abs(score_val + sql) < 1e-9 AS scored_there FROM ag_models, (SELECT sqrt(avg((ag_predict('va_tune', va) - y) ^ 2)) AS sql FROM va WHERE x < 10) s WHERE name = 'va_tune';
CREATE TEMP TABLE va_other AS SELECT * FROM va LIMIT 40;
SELECT va_fit('va_tune2', 'k', '{"tuning_data": "va_other"}');
SELECT va_rows('va_tune2');
SELECT va_fit('va_no', 'y', '{"tuning_data": "SELECT x, y FROM va"}'), va_fit('va_no', 'y', '{"tuning_data": "SELECT *, 1 AS more FROM nowhere"}'), va_fit('va_no', 'y', '{"tuning_data": 7}'),
    va_fit('va_no', 'y', '{"tuning_data": "SELECT * FROM va WHERE false"}'), va_fit('va_no', 'y', '{"tuning_data": "SELECT x, z, day, NULL::int AS y, k, w FROM va"}'),
    va_fit('va_no', 'y', '{"tuning_data": "va"}', 'SELECT * FROM va WHERE false'),
    va_fit('va_no', 'k', '{"tuning_data": "SELECT x, z, day, y, ''new'' AS k, w FROM va LIMIT 30"}'), va_fit('va_no', 'y', '{"tuning_data": "SELECT ''word'' AS x, z, day, y, k, w FROM va"}'),
    va_fit('va_no', 'y', '{"tuning_data": "va", "num_bag_folds": 2}'), va_fit('va_no', 'y', '{"tuning_data": "va", "holdout_frac": 0.2}'),
    va_fit('va_no', 'y', '{"tuning_data": "va", "time_column": "day"}'), va_fit('va_no', 'y', '{"tuning_data": "DELETE FROM va"}');
BEGIN;
SELECT ag_fit_async('va', 'y', '{"name": "va_no", "tuning_data": "va_other"}');
ROLLBACK;

-- bags scored on rows that none of their folds has: at random, the latest, one's own
SELECT va_fit('va_held', 'y', '{"num_bag_folds": 3, "num_bag_sets": 2, "use_bag_holdout": true, "holdout_frac": 0.2, "hyperparameters": {"GBM": {"num_boost_round": 20}, "RF": {"n_estimators": 5}, "LR": {}, "KNN": {}}}');
-- weights are judged on those rows, too, which are in no fold
SELECT count(*) AS weighed FROM ag_leaderboard('va_held') AS w WHERE w.model LIKE 'Weighted%' AND w.score_val > 1.2 * (SELECT max(m.score_val) FROM ag_leaderboard('va_held') AS m WHERE m.model NOT LIKE 'Weighted%');
SELECT va_rows('va_held'), count(*) AS out_of_all FROM ag_predict_oof('va_held');
SELECT abs(sqrt(avg((label::float8 - prediction::float8) ^ 2)) + (SELECT score_val FROM ag_models WHERE name = 'va_held')) < 1e-3 AS scored_there FROM ag_predict_oof('va_held');
SELECT va_fit('va_held_late', 'y', '{"num_bag_folds": 3, "use_bag_holdout": true, "time_column": "day", "holdout_frac": 0.2, "ignored_columns": "day"}');
SELECT va_rows('va_held_late'), score_val < -900 AS hard FROM ag_models WHERE name = 'va_held_late';
SELECT va_fit('va_held_own', 'k', '{"num_bag_folds": 3, "use_bag_holdout": true, "tuning_data": "SELECT * FROM va WHERE x < 10", "refit_full": true}', 'SELECT * FROM va WHERE x >= 10');
SELECT va_rows('va_held_own'), abs(m.score_val - e.value) < 1e-9 AS scored_there FROM ag_models m, ag_evaluate('va_held_own', 'SELECT * FROM va WHERE x < 10') e WHERE m.name = 'va_held_own' AND e.metric = 'accuracy';
SELECT va_fit('va_no', 'y', '{"use_bag_holdout": true}'), va_fit('va_no', 'y', '{"use_bag_holdout": true, "num_bag_folds": 2, "num_stack_levels": 1}');

-- weights in scores
SELECT va_fit('va_weighed', 'y', '{"sample_weight": "w", "weight_evaluation": true, "tuning_data": "va"}');
SELECT abs(score_val + sql) < 1e-9 AS weighed FROM ag_models, (SELECT sqrt(sum(w * (ag_predict('va_weighed', va) - y) ^ 2) / sum(w)) AS sql FROM va) s WHERE name = 'va_weighed';
SELECT va_fit('va_plain', 'y', '{"sample_weight": "w", "tuning_data": "va"}');
SELECT abs(score_val + sql) < 1e-9 AS plain FROM ag_models, (SELECT sqrt(avg((ag_predict('va_plain', va) - y) ^ 2)) AS sql FROM va) s WHERE name = 'va_plain';
SELECT va_fit('va_balanced', 'k', '{"sample_weight": "balance_weight", "weight_evaluation": true, "tuning_data": "va", "ag_args_fit": {"max_time_limit": 60}}');
SELECT abs(score_val - sql) < 1e-9 AS balanced FROM ag_models, (SELECT value AS sql FROM ag_evaluate('va_balanced', 'va') WHERE metric = 'balanced_accuracy') s WHERE name = 'va_balanced';
-- early stopping watches the weighted metric; figures of other rows are weighted likewise
SELECT va_fit('va_stops', 'k', '{"sample_weight": "w", "weight_evaluation": true, "hyperparameters": {"GBM": {"num_boost_round": 40}, "CAT": {"iterations": 20}, "NN_TORCH": {"num_epochs": 6}}, "eval_metric": "log_loss"}',
    'SELECT x, z, k, CASE WHEN (x + z) % 3 = 0 THEN 30 ELSE 1 END AS w FROM va');
SELECT model, bool_or(abs(val + (SELECT score_val FROM ag_leaderboard('va_stops') l WHERE l.model = c.model)) < 1e-5) AS watched FROM ag_learning_curves('va_stops') c GROUP BY 1 ORDER BY 1;
SELECT abs(l.score_test + e.value) < 1e-12 AS same, abs(e.value + s.mean) < 1e-9 AS weighed
FROM ag_leaderboard('va_stops/GBM', 'SELECT x, z, k, x AS w FROM va') l, ag_evaluate('va_stops/GBM', 'SELECT x, z, k, x AS w FROM va') e,
    (SELECT sum(x * ln(ag_predict_proba('va_stops/GBM', va, k))) / sum(x) AS mean FROM va) s WHERE l.model = 'GBM' AND e.metric = 'log_loss';
SELECT abs(e.value - s.mean) < 1e-12 AS accuracy FROM ag_evaluate('va_stops', 'SELECT x, z, k, x AS w FROM va') e,
    (SELECT sum(x * (ag_predict_class('va_stops', va) = k)::int)::float8 / sum(x) AS mean FROM va) s WHERE e.metric = 'accuracy';
SELECT count(*) > 0 AS importance FROM ag_feature_importance('va_stops', 'SELECT x, z, k, x AS w FROM va');
SELECT count(*) FROM ag_evaluate('va_stops', 'SELECT x, z, k FROM va');
SELECT count(*) FROM ag_evaluate('va_stops', 'SELECT x, z, k, x - 3 AS w FROM va');
SELECT count(*) FROM ag_evaluate('va_stops', 'SELECT x, z, k, NULL::int AS w FROM va');
SELECT va_fit('va_no', 'y', '{"weight_evaluation": true}');

-- classes of too few rows are left out, and counted
CREATE TABLE va_rare AS SELECT i AS x, CASE WHEN i <= 2 THEN 'one' WHEN i <= 7 THEN 'two' WHEN i % 2 = 0 THEN 'even' WHEN i % 3 = 0 THEN NULL ELSE 'odd' END AS k, CASE WHEN i <= 2 THEN 1.5 ELSE i % 4 END AS n
FROM generate_series(1, 200) i;
SELECT va_fit('va_rare0', 'k', '{}', 'va_rare'), va_fit('va_rare3', 'k', '{"label_count_threshold": 3}', 'va_rare'), va_fit('va_rare9', 'k', '{"label_count_threshold": 9}', 'va_rare');
SELECT name, problem_type, ag_info(name) -> 'classes' AS classes, rows, rows_left_out FROM ag_models WHERE name LIKE 'va\_rare%' ORDER BY name;
SELECT va_fit('va_no', 'k', '{"label_count_threshold": 100}', 'va_rare'), va_fit('va_no', 'k', '{"label_count_threshold": 0}', 'va_rare'), va_fit('va_no', 'n', '{"label_count_threshold": 5, "problem_type": "regression"}', 'va_rare');
SELECT va_fit('va_int', 'k', '{"label_count_threshold": 5}', 'SELECT x, CASE WHEN x < 4 THEN 7 ELSE x % 3 END AS k FROM va_rare');
SELECT rows_left_out, ag_info('va_int') -> 'classes' AS classes FROM ag_models WHERE name = 'va_int';
-- what means nothing to a number, or to very many classes, says so
SELECT ag_fit_async('SELECT i % 20 AS x, i % 7 AS z, i % 20 + i % 7 AS y FROM generate_series(1, 300) AS i', 'y', '{"name": "va_sum", "calibrate": true, "calibrate_decision_threshold": true, "label_count_threshold": 5, "hyperparameters": {"LR": {}}}') AS job \gset
SELECT ag_wait(:job, 100);
SELECT regexp_replace(line, '^\[.*?\] ', '') AS line FROM regexp_split_to_table(ag_job_log(:job), '\n') line WHERE line LIKE '%means nothing%';
SELECT ag_fit_async('SELECT i % 1100 AS x, i % 1100 || ''th'' AS y FROM generate_series(1, 4400) AS i', 'y', '{"name": "va_many", "calibrate": true, "hyperparameters": {"RF": {"n_estimators": 2}}}') AS job \gset
SELECT ag_wait(:job, 100);
SELECT regexp_replace(line, '^\[.*?\] ', '') AS line FROM regexp_split_to_table(ag_job_log(:job), '\n') line WHERE line LIKE '%means nothing%';
SELECT ag_drop(name) FROM ag_models WHERE name LIKE 'va\_%' ORDER BY name COLLATE "C";
DROP TABLE va, va_other, va_rare;
DROP FUNCTION va_rows, va_fit;
