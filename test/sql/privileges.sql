-- a model is its owner's: other roles neither use nor see it
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 60, "learning_rate": 0.1}}}'
CREATE ROLE regress_ag_owner;
CREATE ROLE regress_ag_member IN ROLE regress_ag_owner;
CREATE ROLE regress_ag_other;
CREATE SCHEMA patients AUTHORIZATION regress_ag_owner;
GRANT USAGE ON SCHEMA patients TO regress_ag_other;
SET ROLE regress_ag_owner;
CREATE TABLE patients.d AS SELECT 'patient ' || i % 40 AS who, i % 40 AS x, (i % 40) * 2.0 AS y FROM generate_series(1, 300) i;
SELECT ag_fit('patients.d', 'y', :'quick'::jsonb || '{"name": "secret"}');
SELECT count(*) AS mine FROM ag_models WHERE name = 'secret' AND owner = 'regress_ag_owner';

SET ROLE regress_ag_other;
CREATE TEMP TABLE r AS SELECT 'patient 3' AS who, 3 AS x, 6.0 AS y;
SELECT ag_predict('secret', r) FROM r;
SELECT ag_predict('secret@1/GBM', r) FROM r;
SELECT ag_predict_class('secret', r) FROM r;
SELECT ag_predict_proba('secret', r) FROM r;
SELECT ag_info('secret');
SELECT * FROM ag_leaderboard('secret');
SELECT * FROM ag_evaluate('secret', 'r');
SELECT ag_drop('secret');
SELECT ag_activate('secret', 1);
SELECT ag_create_function('secret', 'pg_temp.f', 'r');
CREATE FUNCTION pg_temp.f(r) RETURNS float8 LANGUAGE ag_model AS 'secret';
SELECT count(*) AS seen FROM ag_models;
TABLE ag_predictor;
TABLE ag_predictor_feature;
TABLE ag_member;
TABLE ag_member_part;
INSERT INTO ag_predictor_feature DEFAULT VALUES;
SELECT ag_fit('r', 'y', :'quick'::jsonb || '{"name": "secret"}');
-- no leaky function sees a row before the view's own condition
CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE WARNING 'saw %', $1; RETURN true; END $$;
SELECT count(*) FROM ag_models WHERE pg_temp.leak(name);

-- members of the owner's role may, and superusers
SET ROLE regress_ag_member;
SELECT ag_predict('secret', s) IS NOT NULL AS member FROM (SELECT 'patient 3' AS who, 3 AS x) s;
RESET ROLE;
SELECT ag_predict('secret', s) IS NOT NULL AS superuser FROM (SELECT 'patient 3' AS who, 3 AS x) s;

-- one prepared statement, one plan, another role
SET plan_cache_mode = force_generic_plan;
PREPARE p AS SELECT ag_predict('secret', s) IS NOT NULL AS ok FROM (SELECT 'patient 3' AS who, 3 AS x) s;
SET ROLE regress_ag_owner;
EXECUTE p;
SET ROLE regress_ag_other;
EXECUTE p;
SET ROLE regress_ag_owner;
EXECUTE p;

-- EXECUTE on a function of the owner's is the right to predict, which nobody else has at first
SELECT ag_create_function('secret', 'patients.predict_y', 'patients.d');
SET ROLE regress_ag_other;
SELECT patients.predict_y(ROW('patient 3', 3, NULL));
SET ROLE regress_ag_owner;
GRANT EXECUTE ON FUNCTION patients.predict_y(patients.d) TO regress_ag_other;
SET ROLE regress_ag_other;
SELECT patients.predict_y(ROW('patient 3', 3, NULL)) IS NOT NULL AS granted;
-- a name that is near is told to who may use that model, not to who only calls a function of theirs
SET ROLE regress_ag_owner;
SELECT ag_rename('secret', 'secrets');
SELECT ag_info('secret');
SET ROLE regress_ag_other;
SELECT ag_info('secret');
SELECT patients.predict_y(ROW('patient 3', 3, NULL));
SET ROLE regress_ag_owner;
SELECT ag_rename('secrets', 'secret');
RESET ROLE;
GRANT CREATE ON SCHEMA patients TO regress_ag_other;
ALTER FUNCTION patients.predict_y(patients.d) OWNER TO regress_ag_other;
SET ROLE regress_ag_owner;
SELECT patients.predict_y(ROW('patient 3', 3, NULL));
RESET ROLE;

-- reading data happens with the caller's rights
GRANT regress_ag_owner TO regress_ag_other;
REVOKE ALL ON patients.d FROM regress_ag_owner;
SET ROLE regress_ag_other;
SELECT count(*) FROM ag_evaluate('secret', 'patients.d');
RESET ROLE;
GRANT SELECT (x, y, who) ON patients.d TO regress_ag_other;
ALTER TABLE patients.d ADD COLUMN diagnosis text;
SET ROLE regress_ag_other;
SELECT count(*) > 0 AS only_what_is_needed FROM ag_evaluate('secret', 'patients.d');
RESET ROLE;
CREATE TABLE patients.open AS SELECT who, x, y FROM patients.d;
ALTER TABLE patients.open ENABLE ROW LEVEL SECURITY;
CREATE POLICY none ON patients.open USING (false);
GRANT SELECT ON patients.open TO PUBLIC;
SET ROLE regress_ag_other;
SELECT count(*) FROM ag_evaluate('secret', 'patients.open');
RESET ROLE;
REVOKE regress_ag_owner FROM regress_ag_other;

-- the owner's rights are in force for our own statements only: nothing on the path of the caller is looked up then
CREATE SCHEMA trap AUTHORIZATION regress_ag_owner;
SET ROLE regress_ag_owner;
CREATE FUNCTION trap.eq(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'ran as %', current_user; RETURN true; END $$;
CREATE OPERATOR trap.= (FUNCTION = trap.eq, LEFTARG = text, RIGHTARG = text);
SET search_path = trap, pg_catalog, public;
SELECT ag_activate('secret', 1);
SELECT ag_drop('secret');
SELECT current_user AS still;
RESET search_path;
RESET ROLE;

-- the owner's name is a name: who has it now is the owner; without such a role superusers clean up
SET ROLE regress_ag_owner;
GRANT SELECT ON patients.d TO regress_ag_owner;
SELECT ag_fit('SELECT x, y FROM patients.d', 'y', :'quick'::jsonb || '{"name": "left"}');
RESET ROLE;
DROP SCHEMA trap, patients CASCADE;
DROP ROLE regress_ag_member;
DROP ROLE regress_ag_owner;
SET ROLE regress_ag_other;
SELECT count(*) AS seen FROM ag_models;
SELECT ag_drop('left');
RESET ROLE;
SELECT ag_drop('left');
DROP TABLE r;
DROP FUNCTION pg_temp.leak(text);
DROP ROLE regress_ag_other;
