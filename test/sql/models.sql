-- versions: which one is current, going back, dropping
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 60, "learning_rate": 0.1}}}'
CREATE TABLE m AS SELECT i % 50 AS x, (i % 50) * 2.0 AS y FROM generate_series(1, 300) i;
CREATE FUNCTION level() RETURNS text LANGUAGE sql AS
    $$ SELECT CASE WHEN avg(ag_predict('m', t)) < 500 THEN 'old' WHEN avg(ag_predict('m', t)) < 1500 THEN 'new' ELSE 'newest' END FROM m t $$;
SELECT ag_fit('m', 'y', :'quick'::jsonb || '{"name": "m"}');
SELECT name, version, versions, pinned, problem_type, label, eval_metric, rows, rows_left_out, data, predict_with, owner = current_user AS mine,
    score_val IS NOT NULL AS scored, best_model IS NOT NULL AS has_best, fit_time > 0 AS timed, created_at <= now() + interval '1 minute' AS dated
FROM ag_models;
UPDATE m SET y = y + 1000;
SELECT ag_fit('m', 'y', :'quick'::jsonb || '{"name": "m"}');
SELECT name, version, versions FROM ag_models;
SELECT level();
SELECT bool_and(ag_predict('m@2', t) = ag_predict('m', t)) AS current, bool_and(ag_predict('m@1', t) < 500) AS first FROM m t;

-- going back holds against newer fits, until it is taken back
SELECT ag_activate('m', 1);
SELECT level(), version, pinned FROM ag_models;
UPDATE m SET y = y + 1000;
SELECT ag_fit('m', 'y', :'quick'::jsonb || '{"name": "m"}');
SELECT level(), version, pinned FROM ag_models;
SELECT ag_activate('m', 2);
SELECT level(), version, pinned FROM ag_models;
SELECT ag_activate('m', NULL);
SELECT level(), version, pinned FROM ag_models;
SELECT ag_activate('m', 9);
SELECT ag_activate('m', 0);
SELECT ag_activate('m@1', 1);
SELECT ag_activate('nobody', 1);

-- in a transaction: seen at once, gone with it
BEGIN;
SELECT ag_activate('m', 1);
SELECT level();
SAVEPOINT s;
SELECT ag_drop('m@1');
SELECT level();
ROLLBACK TO s;
SELECT level();
ROLLBACK;
SELECT level();
BEGIN READ ONLY;
SELECT ag_drop('m');
ROLLBACK;
BEGIN READ ONLY;
SELECT ag_activate('m', 1);
ROLLBACK;
BEGIN READ ONLY;
SELECT ag_rename('m', 'n');
ROLLBACK;
BEGIN READ ONLY;
SELECT ag_set_decision_threshold('m', 0.3);
ROLLBACK;

-- one function call that outlives statements looks again each time
CREATE FUNCTION steps() RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text := ''; p float8;
BEGIN
    FOR i IN 1..3 LOOP
        PERFORM ag_activate('m', i);
        p := ag_predict('m', '{"x": 0}');
        answer := answer || ' ' || round(p / 1000);
        BEGIN
            PERFORM ag_activate('m', 1);
            p := ag_predict('m', '{"x": 0}');
            answer := answer || ' ' || round(p / 1000);
            RAISE EXCEPTION 'undo';
        EXCEPTION WHEN raise_exception THEN
            p := ag_predict('m', '{"x": 0}');
            answer := answer || ' ' || round(p / 1000);
        END;
    END LOOP;
    RETURN answer;
END $$;
SELECT steps();

-- dropping
SELECT ag_activate('m', NULL);
SELECT ag_drop('m@3');
SELECT level(), version, versions FROM ag_models;
SELECT ag_drop('m@3');
SELECT ag_drop('m/GBM');
SELECT ag_drop('m');
SELECT ag_drop('m');
SELECT level();
SELECT count(*) AS models FROM ag_models;
SELECT (SELECT count(*) FROM ag_predictor) + (SELECT count(*) FROM ag_predictor_feature) + (SELECT count(*) FROM ag_member)
    + (SELECT count(*) FROM ag_member_part) AS rows_left;

-- what is known of a model
CREATE TABLE known AS SELECT i % 20 AS a, 'k' || i % 3 AS b, 1 AS always, CASE WHEN i % 20 > 10 THEN 'yes' WHEN i % 7 > 0 THEN 'no' END AS y
    FROM generate_series(1, 300) i;
SELECT ag_fit('known', 'y', :'quick'::jsonb || '{"name": "known", "time_limit": 60}');
SELECT info -> 'name' AS name, info -> 'version' AS version, info -> 'problem_type' AS problem_type, info -> 'classes' AS classes,
    info -> 'features' AS features, info -> 'left_out' -> 'always' IS NOT NULL AS left_out, info -> 'label' AS label, info -> 'device' AS device,
    info -> 'options' -> 'time_limit' AS time_limit, (info ->> 'rows')::int + (info ->> 'rows_left_out')::int AS rows,
    jsonb_typeof(info -> 'warnings') AS warnings, jsonb_typeof(info -> 'models') AS models
FROM ag_info('known') info;
SELECT ag_info('unknown');
SELECT ag_info('known@2');
SELECT ag_info(NULL) IS NULL AS nothing;
SELECT ag_drop('known');
-- the call to paste where t is a column's name: the alias is another one
CREATE TABLE hot AS SELECT i % 50 AS x, i % 7 AS t FROM generate_series(1, 300) i;
SELECT ag_fit('hot', 'x', :'quick'::jsonb || '{"name": "hot"}'), ag_fit('hot', 't', :'quick'::jsonb || '{"name": "hotter"}');
SELECT predict_with FROM ag_models WHERE name LIKE 'hot%' ORDER BY name;
SELECT ag_drop('hot'), ag_drop('hotter');
DROP TABLE m, known, hot;
DROP FUNCTION level, steps;
