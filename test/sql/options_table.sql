-- the tables that document what ag_fit and the families take
SELECT ag_version() = extversion AS same_version FROM pg_extension WHERE extname = 'ag_pg';
SELECT count(*) > 20 AS many, count(*) = count(DISTINCT name) AS names, count(*) = count(help) AS helped, bool_and("default"::jsonb IS NOT NULL) AS json,
    bool_or(supported) AS some_supported
FROM ag_options();
SELECT name, type, "default", supported FROM ag_options() WHERE name IN ('name', 'time_limit', 'verbosity', 'eval_metric', 'hyperparameters', 'random_state')
ORDER BY name COLLATE "C";
SELECT family, count(*) > 3 AS many, count(*) = count(help) AS helped, bool_or(gpu) AS gpu FROM ag_families() GROUP BY family ORDER BY family COLLATE "C";
SELECT parameter, type, "default" FROM ag_families() WHERE family = 'GBM' AND parameter IN ('num_leaves', 'learning_rate', 'max_depth') ORDER BY parameter COLLATE "C";
