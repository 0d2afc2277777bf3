-- a plan without a fit
SET client_min_messages = warning;
CREATE TABLE pl AS SELECT i AS id, i % 50 AS x, 'k' || i % 5 AS z, (i % 50) * 2.0 + i % 5 AS y FROM generate_series(1, 400) i;
CREATE TABLE pl_plan AS SELECT ag_fit('pl', 'y', '{"name": "pl_dry", "dry_run": true, "num_bag_folds": 4, "time_limit": 100, "hyperparameters": {"GBM": [{}, {"num_leaves": 7, "ag_args_fit": {"max_time_limit": 2}}], "LR": {}, "NN_TORCH": {}}}')::jsonb AS plan;
SELECT plan ->> 'problem_type' AS problem_type, plan ->> 'eval_metric' AS eval_metric, plan -> 'rows' AS rows, plan -> 'num_bag_folds' AS folds, round((plan -> 'time_limit')::numeric) AS time_limit,
    (plan -> 'memory_mb')::float8 BETWEEN 1 AND (plan -> 'memory_limit_mb')::float8 AS memory, (plan -> 'features')::int >= 2 AS features FROM pl_plan;
SELECT m ->> 'model' AS model, m ->> 'device' AS device, m -> 'trainings' AS trainings, (m -> 'memory_mb')::float8 > 0 AS memory, (m -> 'seconds_at_most')::float8 BETWEEN 0.1 AND 100 AS seconds,
    m #> '{hyperparameters,num_leaves}' AS num_leaves FROM pl_plan, jsonb_array_elements(plan -> 'models') m;
SELECT sum((m -> 'seconds_at_most')::float8) <= 100 AS within FROM pl_plan, jsonb_array_elements(plan -> 'models') m;
SELECT count(*) AS stored FROM ag_models;
-- levels above ask for trainings of their own of what is below them: one for each two of four folds
SELECT m ->> 'model' AS model, m -> 'trainings' AS trainings, m -> 'nested_trainings_at_most' AS nested
FROM jsonb_array_elements(ag_fit('pl', 'y', '{"dry_run": true, "verbosity": 0, "num_bag_folds": 4, "num_stack_levels": 1, "hyperparameters": {"LR": {}}}')::jsonb -> 'models') m;
-- a trial whether stacking helps takes its share of the time
SELECT (plan -> 'trial_seconds_at_most')::float8 BETWEEN 30 AND 40 AS trial, plan -> 'stack_levels' AS levels FROM (SELECT ag_fit('pl', 'y', '{"dry_run": true, "verbosity": 0, "time_limit": 100, "num_bag_folds": 4, "dynamic_stacking": true,
    "ds_args": {"detection_time_frac": 0.4}, "hyperparameters": {"LR": {}}}')::jsonb AS plan) s;
-- a search compares more models, on twice as many rows
SELECT plan -> 'rows_scored' AS scored FROM (SELECT ag_fit('SELECT i AS x, i % 7 AS y FROM generate_series(1, 6000) i', 'y', '{"name": "pl_many", "dry_run": true, "verbosity": 0, "hyperparameters": {"LR": {}}}'::jsonb || more)::jsonb AS plan
    FROM unnest(ARRAY['{}', '{"hyperparameter_tune_kwargs": "random"}', '{"hyperparameter_tune_kwargs": "random", "holdout_frac": 0.1}']::jsonb[]) more) s;
-- a plan writes nothing, and a read-only transaction can have one
BEGIN READ ONLY;
SELECT ag_fit('pl', 'y', '{"dry_run": true, "verbosity": 0, "hyperparameters": {"LR": {}}}')::jsonb -> 'rows' AS rows;
SELECT ag_fit('pl', 'y', '{"dry_run": false, "verbosity": 0, "hyperparameters": {"LR": {}}}');
ROLLBACK;
BEGIN READ ONLY;
SELECT ag_fit('pl', 'y', '[{"dry_run": true}]');
ROLLBACK;
-- what can't be fitted can't be planned
SELECT ag_fit('pl', 'y', '{"dry_run": true, "eval_metric": "accuracy", "verbosity": 0}');
SELECT ag_fit('SELECT * FROM pl', 'y', '{"dry_run": true}');
SELECT ag_fit_async('pl', 'y', '{"dry_run": true}');
SELECT ag_fit('pl', 'y', '{"name": "pl_dry", "dry_run": false, "verbosity": 0, "hyperparameters": {"LR": {}}}');
SELECT count(*) AS stored FROM ag_models;
SELECT ag_drop('pl_dry');
DROP TABLE pl, pl_plan;
