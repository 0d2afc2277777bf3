-- a model fitted again as it was fitted, and made smaller
SET client_min_messages = warning;
CREATE TABLE up AS SELECT i % 50 AS x, (i * 7) % 31 AS z, ((i % 50) - 25) ^ 2 + (i * 7) % 31 AS y FROM generate_series(1, 300) i;
SELECT ag_fit('up', 'y', '{"name": "up", "verbosity": 0, "num_bag_folds": 2, "hyperparameters": {"GBM": {"num_boost_round": 20}, "LR": {}, "RF": {"n_estimators": 5}}}');

-- the same data: no better, so the old one stays
SELECT ag_refresh('up');
SELECT name, version, pinned, versions FROM ag_models WHERE name = 'up';
SELECT a.options = b.options AS same_options, a.score_val = b.score_val AS same_score, a.data, a.label FROM ag_predictor a, ag_predictor b WHERE a.name = 'up' AND b.name = 'up' AND a.version = 1 AND b.version = 2;
-- more trees are better; the pin moves along
SELECT ag_refresh('up', options => '{"hyperparameters": {"GBM": {"num_boost_round": 300, "learning_rate": 0.1}, "RF": {"n_estimators": 100}}}');
SELECT name, version, pinned, versions FROM ag_models WHERE name = 'up';
SELECT ag_activate('up', NULL);
-- worse rows
INSERT INTO up SELECT x, z, y + 1000 * (x % 3) FROM up;
SELECT ag_refresh('up@1', 'never');
SELECT version, pinned FROM ag_models WHERE name = 'up';
SELECT ag_refresh('up@1');
SELECT version, pinned FROM ag_models WHERE name = 'up';
SELECT ag_refresh('up@1', 'always');
SELECT version, pinned FROM ag_models WHERE name = 'up';
-- another metric can't be compared
SELECT ag_refresh('up@1', 'if_better', '{"eval_metric": "r2"}');
SELECT version, pinned FROM ag_models WHERE name = 'up';
SELECT ag_refresh('up', 'perhaps');
SELECT ag_refresh('up', options => '{"dry_run": true}');
-- what would be ignored is refused before anything is fitted; the model's own name is none such
SELECT ag_refresh('up', options => '{"name": "another"}');
SELECT ag_refresh('up', options => '{"name": 5}');
SELECT ag_refresh('up', options => '5');
SELECT ag_refresh('up', options => '[{"time_limit": 5}]');
SELECT ag_refresh('up', options => '{"name": "up", "dry_run": false, "time_limt": 5}');
SELECT ag_refresh('up/GBM_BAG_L1');
SELECT ag_refresh('nobody');
SELECT ag_refresh(NULL) IS NULL AS none;
CREATE ROLE up_reader;
SELECT ag_grant('up', 'up_reader', 'inspect');
SET ROLE up_reader;
SELECT ag_refresh('up');
SELECT * FROM ag_delete_members('up', '{best}');
RESET ROLE;

-- fewer members
SELECT member, bytes > 0 AS bytes FROM ag_delete_members('up@1', models_to_delete => '{LR_BAG_L1}', dry_run => true) ORDER BY member;
SELECT count(*) AS still_there FROM ag_leaderboard('up@1') WHERE model = 'LR_BAG_L1';
SELECT * FROM ag_delete_members('up@1', models_to_delete => '{best}');
SELECT * FROM ag_delete_members('up@1', models_to_delete => '{GBM_BAG_L1/S1F1}');
SELECT * FROM ag_delete_members('up@1', models_to_keep => '{RF_BAG_L1}') WHERE false;
SELECT * FROM ag_delete_members('up@1', '{nobody}');
SELECT * FROM ag_delete_members('up@1', '{best}', '{RF_BAG_L1}');
SELECT * FROM ag_delete_members('up@1');
CREATE TABLE up_before AS SELECT x, z, ag_predict('up@1', up) AS p FROM up;
SELECT count(*) > 2 AS gone, sum(bytes) > 1000 AS bytes FROM ag_delete_members('up@1', '{best}');
SELECT count(*) FILTER (WHERE ag_predict('up@1', up_before) = p) = count(*) AS same FROM up_before;
SELECT count(*) AS left FROM ag_leaderboard('up@1');
SELECT count(*) FROM ag_delete_members('up@1', '{best}');
BEGIN READ ONLY;
SELECT * FROM ag_delete_members('up', '{best}');
ROLLBACK;
-- tables that somebody wrote to by hand are an error, whatever is missing
BEGIN;
ALTER TABLE ag_predictor ALTER options DROP NOT NULL, ALTER plan DROP NOT NULL;
UPDATE ag_predictor SET options = NULL WHERE name = 'up';
SAVEPOINT s;
SELECT ag_refresh('up');
ROLLBACK TO s;
SELECT ag_fit('up', 'y', '{"replay": "up"}');
ROLLBACK TO s;
UPDATE ag_predictor SET options = '{}', plan = NULL WHERE name = 'up';
SELECT ag_refit_full('up');
ROLLBACK;
SELECT ag_drop('up');
DROP ROLE up_reader;
DROP TABLE up, up_before;
