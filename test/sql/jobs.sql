-- jobs: what can be told without several sessions (test/t/jobs.pl has the rest)
\set VERBOSITY terse
\set quick '{"hyperparameters": {"GBM": {"num_boost_round": 20}}, "time_limit": 60}'
\set slow '{"hyperparameters": {"GBM": {"num_boost_round": 1000000, "learning_rate": 0.00001, "num_leaves": 4}}, "ag_args_fit": {"early_stop": null}, "time_limit": 100}'
CREATE TABLE jd AS SELECT i % 50 AS x, i % 50 * 2.0 AS y, 'k' || i % 3 AS kind FROM generate_series(1, 300) i;

-- one that succeeds
SELECT ag_fit_async('jd', 'Y', :'quick') AS job \gset
SELECT ag_wait(:job, 60);
SELECT state, phase IS NOT NULL AS phase, model, version, percent, elapsed > 0 AS elapsed, remaining, score IS NOT NULL AS score, message, data, label,
    options = :'quick' AS options, owner = current_user AS owner, submitted_at <= started_at AND started_at <= ended_at AS times
FROM ag_jobs WHERE id = :job;
SELECT count(*) AS predicted FROM jd WHERE ag_predict('jd_y', jd) IS NOT NULL;
SELECT line FROM regexp_split_to_table(regexp_replace(ag_job_log(:job), '\[[0-9.]+ s\] | \(.*', '', 'gn'), '\n') AS line
WHERE line ~ 'rows and|stored as|HINT:  SELECT';
SELECT ag_wait(:job), ag_wait(:job, 0), ag_cancel(:job) AS cancelled;
SELECT data, owner = current_user AS mine FROM ag_models WHERE name = 'jd_y';
-- the same model as of a fit in a session
SELECT ag_fit('jd', 'y', :'quick'::jsonb || '{"verbosity": 0, "name": "jd_y"}');
SELECT count(DISTINCT md5(p.data)) AS different, count(*) AS parts FROM ag_member_part p JOIN ag_predictor ON id = predictor WHERE name = 'jd_y' AND member = 1;

-- all that ag_fit refuses is refused at once
SELECT ag_fit_async('nothing', 'y');
SELECT ag_fit_async('jd', 'z');
SELECT ag_fit_async('SELECT * FROM jd', 'y');
SELECT ag_fit_async('jd', 'y', '{"time_limt": 1}');
SELECT ag_fit_async('DELETE FROM jd', 'y');
SELECT ag_fit_async(NULL, 'y');
SELECT ag_fit_async('jd', NULL);
BEGIN READ ONLY;
SELECT ag_fit_async('jd', 'y');
ROLLBACK;
CREATE TEMP TABLE tj AS TABLE jd;
CREATE VIEW tv AS TABLE tj;
SELECT ag_fit_async('tj', 'y');
SELECT ag_fit_async('tv', 'y');
SELECT ag_fit_async('SELECT j.x, t.y FROM jd j JOIN tj t USING (x)', 'y', '{"name": "t"}');
SELECT ag_fit_async('WITH w AS (SELECT * FROM tj) SELECT * FROM w', 'y', '{"name": "t"}');
DROP TABLE tj CASCADE;
SELECT count(*) AS jobs FROM ag_jobs;

-- of this transaction: neither waited for nor prepared, and gone with it
BEGIN;
SELECT ag_fit_async('jd', 'y', :'quick') AS job \gset
SELECT ag_wait(:job);
ROLLBACK;
SELECT count(*) AS jobs FROM ag_jobs;
BEGIN;
SELECT ag_fit_async('jd', 'y', :'quick') AS job \gset
PREPARE TRANSACTION 'never';
SELECT count(*) AS jobs FROM ag_jobs;
-- cancelled before it starts; after a savepoint
BEGIN;
SELECT ag_fit_async('jd', 'y', :'quick') AS job \gset
SAVEPOINT s;
SELECT ag_fit_async('jd', 'y', :'quick') AS undone \gset
ROLLBACK TO s;
SELECT ag_cancel(:job);
COMMIT;
SELECT state, message, started_at IS NULL AS never_started FROM ag_jobs WHERE id = :job;
SELECT ag_wait(:undone);
SELECT count(*) AS orders FROM ag_job_order;

-- one that fails says why
SELECT ag_fit_async('SELECT x, CASE WHEN x < 0 THEN 1 END AS y FROM jd', 'y', :'quick'::jsonb || '{"name": "none"}') AS job \gset
SELECT ag_wait(:job, 60);
SELECT state, message FROM ag_jobs WHERE id = :job;
SELECT ag_fit_async('SELECT 1 / (x - 20) AS x, y FROM jd', 'y', :'quick'::jsonb || '{"name": "none"}') AS job \gset
SELECT ag_wait(:job, 60);
SELECT state, message FROM ag_jobs WHERE id = :job;
CREATE FUNCTION writes() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN INSERT INTO jd VALUES (1, 1, 'k'); RETURN 1; END $$;
SELECT ag_fit_async('SELECT writes() AS w, * FROM jd', 'y', :'quick'::jsonb || '{"name": "none"}') AS job \gset
SELECT ag_wait(:job, 60);
SELECT state, message FROM ag_jobs WHERE id = :job;
CREATE FUNCTION talks(x int) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN IF x = 7 THEN RAISE WARNING 'seven'; END IF; RETURN x; END $$;
SELECT ag_fit_async('SELECT talks(x::int) AS x, y FROM (SELECT DISTINCT * FROM jd WHERE kind = ''k1'') d', 'y', :'quick'::jsonb || '{"name": "talks"}') AS job \gset
SELECT ag_wait(:job, 60);
SELECT regexp_matches(ag_job_log(:job), 'WARNING:  seven');

-- settings of the session go along
CREATE SCHEMA js;
CREATE TABLE js.jd AS SELECT i AS x, 7.0 AS only_there, i AS y FROM generate_series(1, 100) i;
SET search_path = js, public;
SET TimeZone = 'Asia/Tokyo';
SET DateStyle = 'SQL, DMY';
SELECT ag_fit_async('SELECT x, only_there, y, current_setting(''TimeZone'') = ''Asia/Tokyo'' AS tz, ''02/01/2020''::date - ''2020-01-01''::date AS dmy FROM jd', 'y',
    :'quick'::jsonb || '{"name": "settings"}') AS job \gset
SELECT ag_wait(:job, 60);
RESET TimeZone;
RESET DateStyle;
SELECT feature, categories, min, max FROM ag_features WHERE model = 'settings' AND feature IN ('tz', 'dmy');
SELECT ag_fit_async('jd', 'y', :'quick'::jsonb || '{"name": "resolved"}') AS job \gset
SET search_path = public;
SELECT ag_wait(:job, 60);
SELECT count(*) AS of_the_path_then FROM ag_features WHERE model = 'resolved' AND feature = 'only_there';

-- rights
CREATE ROLE regress_ag_jobs;
CREATE ROLE regress_ag_nosy;
GRANT CREATE ON SCHEMA public TO regress_ag_jobs;
SET ROLE regress_ag_jobs;
SELECT ag_fit_async('jd', 'y', :'quick');
CREATE TABLE mine AS SELECT x, x * 2.0 AS y FROM generate_series(1, 100) x;
SELECT ag_fit_async('mine', 'y', :'quick'::jsonb || '{"name": "jd_y"}');
SELECT ag_fit_async('mine', 'y', :'quick') AS job \gset
SELECT ag_wait(:job, 60);
SELECT state, owner FROM ag_jobs;
SELECT owner, my_right FROM ag_models WHERE name = 'mine_y';
-- who it runs as, and that it can't become anybody else
CREATE FUNCTION who() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    BEGIN RESET ROLE; EXCEPTION WHEN OTHERS THEN RAISE WARNING '%', SQLERRM; END;
    BEGIN RESET SESSION AUTHORIZATION; EXCEPTION WHEN OTHERS THEN RAISE WARNING '%', SQLERRM; END;
    BEGIN SET ROLE postgres; EXCEPTION WHEN OTHERS THEN RAISE WARNING '%', SQLERRM; END;
    BEGIN CREATE TEMP TABLE t (); EXCEPTION WHEN OTHERS THEN RAISE WARNING '%', SQLERRM; END;
    BEGIN PERFORM count(*) FROM pg_authid; EXCEPTION WHEN OTHERS THEN RAISE WARNING '%', SQLERRM; END;
    RETURN current_user || ' ' || (session_user = 'regress_ag_jobs') || ' ' || current_setting('is_superuser');
END $$;
SELECT ag_fit_async('SELECT x, y, (SELECT who()) AS who FROM mine', 'y', :'quick'::jsonb || '{"name": "who"}') AS job \gset
SELECT ag_wait(:job, 60);
SELECT line FROM regexp_split_to_table(regexp_replace(ag_job_log(:job), '\[[0-9.]+ s\] | within security-.*', '', 'gn'), '\n') AS line WHERE line ~ 'WARNING';
SELECT who.categories FROM ag_features who WHERE model = 'who' AND feature = 'who';
-- others neither see nor stop it
SELECT ag_fit_async('SELECT x, y FROM mine, generate_series(1, 100)', 'y', :'slow'::jsonb || '{"name": "slow"}') AS job \gset
SET ROLE regress_ag_nosy;
SELECT count(*) AS seen FROM ag_jobs;
SELECT ag_wait(:job);
SELECT ag_cancel(:job);
SELECT ag_job_log(:job);
TABLE ag_job;
TABLE ag_job_order;
SELECT nextval('ag_job_id_seq');
CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE WARNING 'saw %', $1; RETURN true; END $$;
SELECT count(*) FROM ag_jobs WHERE pg_temp.leak(data);
RESET ROLE;
SELECT count(*) > 5 AS superuser_sees FROM ag_jobs;
SELECT ag_wait(:job, 2);
SELECT ag_cancel(:job);
SELECT state, message FROM ag_jobs WHERE id = :job;
SELECT ag_cancel(:job), ag_wait(:job);

-- row-level security counts as it would for the submitter
CREATE TABLE secrets AS SELECT i AS x, i * 1.0 AS y, CASE WHEN i % 2 = 0 THEN 'regress_ag_jobs' ELSE 'postgres' END AS who FROM generate_series(1, 200) i;
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON secrets USING (who = current_user);
GRANT SELECT ON secrets TO regress_ag_jobs;
SET ROLE regress_ag_jobs;
SELECT ag_fit_async('SELECT x, y FROM secrets', 'y', :'quick'::jsonb || '{"name": "rls"}') AS job \gset
SELECT ag_wait(:job, 60);
SELECT rows FROM ag_models WHERE name = 'rls';
SET row_security = off;
SELECT ag_fit_async('SELECT x, y FROM secrets', 'y', :'quick'::jsonb || '{"name": "rls"}') AS job \gset
RESET row_security;
RESET ROLE;

-- a role or table that is gone by the time; the table's owner who isn't trusted
BEGIN;
SET ROLE regress_ag_jobs;
SELECT ag_fit_async('mine', 'y', :'quick'::jsonb || '{"name": "gone"}') AS job \gset
RESET ROLE;
ALTER ROLE regress_ag_jobs RENAME TO regress_ag_jobs2;
COMMIT;
SELECT ag_wait(:job, 60);
SELECT state, message FROM ag_jobs WHERE id = :job;
BEGIN;
SELECT ag_fit_async('mine', 'y', :'quick'::jsonb || '{"name": "gone"}') AS job \gset
DROP TABLE mine;
COMMIT;
SELECT ag_wait(:job, 60);
SELECT state, message FROM ag_jobs WHERE id = :job;
BEGIN;
ALTER TABLE ag_job_order OWNER TO regress_ag_nosy;
SELECT ag_fit_async('jd', 'y', :'quick');
ROLLBACK;

-- wrong arguments
SELECT ag_wait(-1);
SELECT ag_wait(NULL);
SELECT ag_wait(1, -1);
SELECT ag_wait(1, 'NaN');
SELECT ag_cancel(0);
SELECT ag_job_log(0);
SELECT ag_cancel(NULL) IS NULL AS nothing;

-- columns to learn from are those that models see
SELECT ag_fit_async('SELECT *, y + 1 AS w FROM jd', 'y', :'quick'::jsonb || '{"name": "jd_seen", "sample_weight": "w", "tuning_data": "SELECT *, 2 AS w FROM jd", "ignored_columns": "kind"}') AS seen \gset
SELECT ag_wait(:seen, 60);
SELECT substring(ag_job_log(:seen) FROM '[0-9]+ rows? and .* from') AS line;
SELECT ag_drop('jd_seen');
-- the last words are the call to paste, by the kind of label: pasted, it runs
SELECT ag_fit_async('SELECT x, kind FROM jd', 'kind', :'quick'::jsonb || '{"name": "jd kind"}') AS kind, ag_fit_async('jd', 'y', :'quick'::jsonb || '{"name": "jd_levels", "problem_type": "quantile", "quantile_levels": [0.2, 0.9]}') AS levels \gset
SELECT ag_wait(:kind, 60), ag_wait(:levels, 60);
SELECT substring(ag_job_log(id) FROM 'HINT: +(SELECT[^\n]*)\n*$') AS call FROM unnest(ARRAY[:kind, :levels]) AS id;
SELECT 'SELECT count(*) AS rows FROM (' || substring(ag_job_log(id) FROM 'HINT: +(SELECT[^\n]*)\n*$') || ') AS pasted' FROM unnest(ARRAY[:kind, :levels]) AS id \gexec

SELECT sum(ag_drop(name)) > 0 AS dropped FROM ag_models;
SELECT count(*) AS orders FROM ag_job_order;
DROP FUNCTION pg_temp.leak(text);
DROP SCHEMA js CASCADE;
DROP TABLE jd, secrets;
DROP FUNCTION writes, talks, who;
REVOKE CREATE ON SCHEMA public FROM regress_ag_jobs2;
DELETE FROM ag_job;
DROP ROLE regress_ag_jobs2, regress_ag_nosy;
