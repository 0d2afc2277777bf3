-- rights on models: predict, inspect, owner; and attempts to get more
SET client_min_messages = warning;
\set VERBOSITY terse
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 40, "learning_rate": 0.1}}}'
CREATE ROLE regress_ag_owner;
CREATE ROLE regress_ag_user;
CREATE ROLE regress_ag_member IN ROLE regress_ag_user;
CREATE ROLE regress_ag_other;
CREATE SCHEMA ward AUTHORIZATION regress_ag_owner;
SET ROLE regress_ag_owner;
CREATE TABLE ward.d AS SELECT 'patient ' || i % 40 AS who, i % 40 AS x, CASE WHEN i % 40 > 20 THEN 'ill' ELSE 'well' END AS y FROM generate_series(1, 300) i;
SELECT ag_fit('ward.d', 'y', :'quick'::jsonb || '{"name": "secret"}');
SELECT ag_fit('ward.d', 'y', :'quick'::jsonb || '{"name": "secret"}');
\set row 'jsonb_build_object(\'who\', \'patient 3\', \'x\', 3)'

-- predict: on the model, without a right on the table
SELECT ag_grant('secret', 'regress_ag_user', 'predict');
SELECT ag_grant('secret', 'regress_ag_user');
SET ROLE regress_ag_user;
SELECT ag_predict_class('secret', :row), ag_predict_class('secret@1', :row), ag_predict_class('secret/GBM', :row);
SELECT ag_predict_proba('secret', :row, 'ill'::text) < 0.5 AS well;
SELECT count(*) FROM ward.d;
SELECT name, version, owner, data, my_right FROM ag_models;
SELECT string_agg(key, ' ' ORDER BY key COLLATE "C") AS shown FROM jsonb_object_keys(ag_info('secret')) AS key;
SELECT ag_info('secret')::text LIKE '%patient%' AS shows_data;
SELECT count(*) > 0 AS scores FROM ag_leaderboard('secret');
SELECT count(*) AS features FROM ag_features;
-- and nothing else
SELECT ag_drop('secret');
SELECT ag_activate('secret', 1);
SELECT ag_rename('secret', 'mine');
SELECT ag_grant('secret', 'regress_ag_other', 'predict');
SELECT ag_revoke('secret', 'regress_ag_user', 'predict');
SELECT ag_reassign('regress_ag_owner', 'regress_ag_user');
CREATE TEMP TABLE r AS SELECT 'patient 3' AS who, 3 AS x, 'well' AS y;
SELECT ag_fit('r', 'y', :'quick'::jsonb || '{"name": "secret"}');
SELECT count(*) > 0 AS evaluated FROM ag_evaluate('secret', 'r');
TABLE ag_predictor_grant;
INSERT INTO ag_predictor_grant VALUES ('secret', 'regress_ag_user', 'inspect');
SET ROLE regress_ag_other;
SELECT ag_predict_class('secret', :row);
SELECT ag_drop('secret');
SELECT count(*) AS seen FROM ag_models;
-- members of the grantee too
SET ROLE regress_ag_member;
SELECT ag_predict_class('secret', :row), (SELECT my_right FROM ag_models);

-- inspect
SET ROLE regress_ag_owner;
SELECT ag_grant('secret', 'regress_ag_user', 'inspect');
SET ROLE regress_ag_user;
SELECT name, data, my_right FROM ag_models;
SELECT string_agg(key, ' ' ORDER BY key COLLATE "C") AS shown FROM jsonb_object_keys(ag_info('secret')) AS key;
SELECT model, feature, type, used FROM ag_features WHERE version = 2 ORDER BY ordinal;
SELECT categories::text LIKE '%patient%' AS shows_categories FROM ag_features WHERE feature = 'who' AND version = 1;
SELECT ag_drop('secret');

-- taken back: inspect alone, then all
SET ROLE regress_ag_owner;
SELECT ag_revoke('secret', 'regress_ag_user', 'inspect');
SET ROLE regress_ag_user;
SELECT my_right FROM ag_models;
SET ROLE regress_ag_owner;
SELECT ag_grant('secret', 'regress_ag_user', 'inspect');
SELECT ag_revoke('secret', 'regress_ag_user');
SET ROLE regress_ag_user;
SELECT count(*) AS seen FROM ag_models;
SELECT ag_predict_class('secret', :row);

-- everybody; wrong arguments
SET ROLE regress_ag_owner;
SELECT ag_grant('secret', 'public', 'predict');
SET ROLE regress_ag_other;
SELECT ag_predict_class('secret', :row);
SET ROLE regress_ag_owner;
SELECT ag_revoke('secret', 'Public', 'predict');
SELECT ag_grant('secret', 'PUBLIC'), ag_revoke('secret', 'public');
SELECT ag_grant('secret', 'nobody_at_all', 'predict');
SELECT ag_grant('secret', 'regress_ag_user', 'select');
SELECT ag_grant('secret@1', 'regress_ag_user', 'predict');
SELECT ag_grant('secret/GBM', 'regress_ag_user', 'predict');
SELECT ag_grant('nothing', 'regress_ag_user', 'predict');
SELECT ag_grant('secret', NULL, 'predict');
SELECT ag_revoke('secret', 'regress_ag_user', 'select');
SELECT ag_revoke('secret', 'nobody_at_all', 'predict');
BEGIN READ ONLY;
SELECT ag_grant('secret', 'regress_ag_user', 'predict');
ROLLBACK;

-- renamed: rights go along, and none wait under a new name
SELECT ag_grant('secret', 'regress_ag_user', 'predict');
SELECT ag_rename('secret', 'Öffentlich');
SELECT ag_rename('Öffentlich', 'a@b');
SELECT ag_rename('Öffentlich', '');
SELECT ag_rename('Öffentlich', repeat('x', 64));
SELECT ag_rename('Öffentlich@1', 'b');
SELECT ag_rename('secret', 'b');
SET ROLE regress_ag_user;
SELECT name, versions, my_right, predict_with FROM ag_models;
SELECT ag_predict_class('Öffentlich', :row);
SELECT ag_fit('SELECT x % 20 AS x, x % 3 AS y FROM generate_series(1, 100) x', 'y', :'quick'::jsonb || '{"name": "taken"}');
SET ROLE regress_ag_owner;
SELECT ag_rename('Öffentlich', 'taken');
SELECT ag_rename('Öffentlich', 'secret');

-- dropped: its rights go too, with the last version
SELECT ag_drop('secret@1');
SET ROLE regress_ag_user;
SELECT my_right FROM ag_models WHERE name = 'secret';
SET ROLE regress_ag_owner;
SELECT ag_drop('secret');
SELECT ag_fit('ward.d', 'y', :'quick'::jsonb || '{"name": "secret"}');
SET ROLE regress_ag_user;
SELECT my_right FROM ag_models WHERE name = 'secret';
RESET ROLE;
-- rows that waited for a name are no rights on another's model
INSERT INTO ag_predictor_grant VALUES ('waiting', 'regress_ag_user', 'inspect');
SET ROLE regress_ag_owner;
SELECT ag_fit('ward.d', 'y', :'quick'::jsonb || '{"name": "waiting"}');
SET ROLE regress_ag_user;
SELECT my_right FROM ag_models WHERE name = 'waiting';
SET ROLE regress_ag_owner;
SELECT ag_drop('waiting');

-- a model stays its owner's, whoever of his fits it again
RESET ROLE;
SELECT ag_fit('ward.d', 'y', :'quick'::jsonb || '{"name": "secret"}');
SELECT version, owner FROM ag_models WHERE name = 'secret';

-- a definer's function lends the definer's right, not the model
SET ROLE regress_ag_owner;
GRANT USAGE ON SCHEMA ward TO PUBLIC;
CREATE FUNCTION ward.ask(jsonb) RETURNS text LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$ SELECT ag_predict_class('secret', $1) $$;
SET ROLE regress_ag_other;
SELECT ward.ask(:row);
SELECT ag_predict_class('secret', :row);
-- and one inside the other has the inner one's
CREATE FUNCTION pg_temp.mine() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT ag_predict_class('secret', '{"who": "patient 3", "x": 3}') $$;
SET ROLE regress_ag_owner;
SELECT pg_temp.mine();
RESET ROLE;

-- leaky functions and operators see no row before the view's own condition
SET ROLE regress_ag_other;
CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE WARNING 'saw %', $1; RETURN true; END $$;
CREATE FUNCTION pg_temp.leak(text, text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE WARNING 'saw %', $1; RETURN true; END $$;
CREATE OPERATOR pg_temp.<<< (FUNCTION = pg_temp.leak, LEFTARG = text, RIGHTARG = text);
SELECT count(*) FROM ag_models WHERE pg_temp.leak(name);
SELECT count(*) FROM ag_models WHERE name OPERATOR(pg_temp.<<<) 'x';
SELECT count(*) FROM ag_features WHERE pg_temp.leak(feature);
-- objects of the caller's that are called like ours
CREATE TEMP TABLE ag_predictor_grant (predictor text, grantee text, privilege text);
CREATE TEMP TABLE ag_predictor AS SELECT 'secret' AS name, 'regress_ag_other' AS owner;
INSERT INTO pg_temp.ag_predictor_grant VALUES ('secret', 'regress_ag_other', 'inspect');
CREATE FUNCTION pg_temp.ag_model_right(text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'owner' $$;
SELECT ag_predict_class('secret', :row);
SELECT count(*) AS seen FROM ag_models;
DROP TABLE pg_temp.ag_predictor, pg_temp.ag_predictor_grant;
DROP FUNCTION pg_temp.ag_model_right, pg_temp.mine;
RESET ROLE;

-- to another role; and from one that is no more
SELECT ag_reassign('regress_ag_owner', 'nobody_at_all');
SELECT ag_reassign('regress_ag_owner', NULL);
SET ROLE regress_ag_owner;
SELECT ag_grant('secret', 'regress_ag_user', 'inspect');
SELECT ag_reassign('regress_ag_owner', 'regress_ag_other');
RESET ROLE;
GRANT regress_ag_other TO regress_ag_owner;
SET ROLE regress_ag_owner;
SELECT ag_reassign('regress_ag_owner', 'regress_ag_other');
SET ROLE regress_ag_other;
SELECT name, owner, my_right FROM ag_models;
RESET ROLE;
ALTER ROLE regress_ag_other RENAME TO regress_ag_renamed;
ALTER ROLE regress_ag_user RENAME TO regress_ag_user2;
SET ROLE regress_ag_renamed;
SELECT count(*) AS seen FROM ag_models;
SELECT ag_reassign('regress_ag_other', 'regress_ag_renamed');
RESET ROLE;
SELECT ag_reassign('regress_ag_other', 'regress_ag_renamed');
SELECT ag_reassign('regress_ag_user', 'regress_ag_user2');
SET ROLE regress_ag_renamed;
SELECT name, owner, my_right FROM ag_models;
SET ROLE regress_ag_user2;
SELECT name, owner, my_right FROM ag_models ORDER BY name;
RESET ROLE;

-- one plan, one session, rights that change
SET plan_cache_mode = force_generic_plan;
PREPARE p AS SELECT ag_predict_class('secret', jsonb_build_object('who', 'patient 3', 'x', 3));
SET ROLE regress_ag_user2;
EXECUTE p;
RESET ROLE;
SELECT ag_revoke('secret', 'regress_ag_user2');
SET ROLE regress_ag_user2;
EXECUTE p;
RESET ROLE;

-- tables that their owner altered are refused, not misread
BEGIN;
ALTER TABLE ag_predictor_grant DROP CONSTRAINT ag_predictor_grant_privilege_check;
ALTER TABLE ag_predictor_grant ALTER privilege TYPE bigint USING 3;
SET ROLE regress_ag_user2;
SELECT ag_predict_class('secret', :row);
ROLLBACK;
BEGIN;
ALTER TABLE ag_member ALTER num_cpus TYPE text;
SELECT ag_info('secret');
ROLLBACK;

SELECT ag_drop('secret'), ag_drop('taken');
DROP SCHEMA ward CASCADE;
DROP TABLE r;
DROP FUNCTION pg_temp.leak(text), pg_temp.leak(text, text) CASCADE;
SELECT count(*) AS grants_left FROM ag_predictor_grant;
DROP ROLE regress_ag_member;
DROP ROLE regress_ag_owner, regress_ag_user2, regress_ag_renamed;
