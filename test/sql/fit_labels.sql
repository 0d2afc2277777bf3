-- Labels: how they are matched, what they may hold, what becomes of NULLs.
SET client_min_messages = warning;
CREATE FUNCTION fl_fit(data text, label text, options jsonb DEFAULT '{}') RETURNS text LANGUAGE sql AS
    $$ SELECT ag_fit(data, label, '{"hyperparameters": {"GBM": {"num_boost_round": 30, "min_data_in_leaf": 5}}, "verbosity": 1}' || options) $$;
CREATE TABLE fl AS
SELECT i % 50 AS x, (i % 50) * 1.5 AS "Real", i % 50 > 25 AS "Flag", CASE WHEN i % 50 > 25 THEN 'yes' ELSE 'no' END AS word,
    (ARRAY['red', 'green', 'blue'])[1 + i % 50 / 17] AS colour, i % 50 / 10 AS five, i % 50 AS fifty
FROM generate_series(1, 300) AS i;

-- exact, else the only one without regard to case
SELECT fl_fit('fl', 'real', '{"name": "fl_real"}'), fl_fit('fl', 'FLAG', '{"name": "fl_flag"}'), fl_fit('fl', 'word'), fl_fit('fl', 'Colour'), fl_fit('fl', 'five'),
    fl_fit('fl', 'fifty');
SELECT name, label, problem_type, eval_metric, classes FROM ag_predictor WHERE name LIKE 'fl\_%' ORDER BY name;
SELECT fl_fit('fl', 'five', '{"problem_type": "regression", "name": "fl_five_r"}'), fl_fit('fl', 'fifty', '{"problem_type": "multiclass", "name": "fl_fifty_m"}');
SELECT name, problem_type, jsonb_array_length(classes) AS classes FROM ag_predictor WHERE name IN ('fl_five_r', 'fl_fifty_m') ORDER BY name;

-- class values that look like anything come back letter for letter
CREATE TABLE fl_odd AS
SELECT i % 60 AS x, (ARRAY['', ' ', 'NULL', $$'); DROP TABLE fl; --$$, $$O'Brien" \ %s {}$$, 'größer'])[1 + i % 60 / 10] AS y
FROM generate_series(1, 300) AS i;
SELECT fl_fit('fl_odd', 'y');
SELECT classes FROM ag_predictor WHERE name = 'fl_odd_y';
SELECT avg((ag_predict_class('fl_odd_y', t) = y)::int) > 0.95 AS learnt FROM fl_odd AS t;

-- enum, domain, name, varchar and char labels
CREATE TYPE fl_mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN fl_score AS int CHECK (VALUE >= 0);
CREATE TABLE fl_kinds AS
SELECT x, (ARRAY['sad', 'happy'])[1 + (x > 25)::int]::fl_mood AS mood, (x > 25)::int::fl_score AS score, word::char(7) AS padded, word::name AS named, x::numeric / 8 AS n
FROM fl;
SELECT fl_fit('fl_kinds', l) FROM unnest(ARRAY['mood', 'score', 'padded', 'named', 'n']) AS l;
SELECT name, problem_type, classes FROM ag_predictor WHERE name LIKE 'fl\_kinds%' ORDER BY name;

-- NULL labels are left out and counted; NaN, infinity, nothing but NULLs, one value, no row: errors that name the column
CREATE TABLE fl_null AS SELECT x, CASE WHEN x % 3 = 0 THEN NULL ELSE "Real" END AS y FROM fl;
SELECT fl_fit('fl_null', 'y');
SELECT rows, rows_left_out FROM ag_predictor WHERE name = 'fl_null_y';
SELECT fl_fit(format('SELECT x, %s AS the_label FROM fl', l), 'the_label', '{"name": "fl_bad"}') FROM unnest(ARRAY[
    $$CASE WHEN x = 7 THEN 'NaN' ELSE x::float8 END$$]) AS l;
SELECT fl_fit($$SELECT x, CASE WHEN x = 7 THEN '-Infinity' ELSE x::float8 END AS the_label FROM fl$$, 'the_label', '{"name": "fl_bad"}');
SELECT fl_fit('SELECT x, NULL::float8 AS the_label FROM fl', 'the_label', '{"name": "fl_bad"}');
SELECT fl_fit('SELECT x, 5 AS the_label FROM fl', 'the_label', '{"name": "fl_bad"}');
SELECT fl_fit('SELECT x, x AS the_label FROM fl WHERE false', 'the_label', '{"name": "fl_bad"}');
SELECT fl_fit('SELECT x, word AS the_label FROM fl', 'the_label', '{"name": "fl_bad", "problem_type": "regression"}');
SELECT fl_fit('SELECT x, colour AS the_label FROM fl', 'the_label', '{"name": "fl_bad", "problem_type": "binary"}');
SELECT fl_fit('SELECT x, now() AS the_label FROM fl', 'the_label', '{"name": "fl_bad"}');
SELECT fl_fit('SELECT x, word AS the_label FROM fl', 'the_label', '{"name": "fl_bad", "positive_class": "maybe"}');
SELECT fl_fit('SELECT x, word AS the_label FROM fl', 'the_label', '{"name": "fl_bad", "eval_metric": "rmse"}');
SELECT fl_fit('SELECT x, x * 10::numeric ^ 400 AS the_label FROM fl WHERE x > 0', 'the_label', '{"name": "fl_bad"}');
-- a type that can't be predicted is refused before a row is read
SELECT fl_fit('SELECT 1 / (x - x) AS z, interval ''1 day'' AS "The Label" FROM fl', 'The Label', '{"name": "fl_bad"}');
SELECT fl_fit('SELECT 1 / (x - x) AS z, word AS the_label FROM fl', 'the_label', '{"name": "fl_bad", "problem_type": "quantile"}');
SELECT count(*) FROM ag_predictor WHERE name = 'fl_bad';

-- whole numbers that no double tells apart stay classes of their own
CREATE TABLE fl_big AS SELECT i % 3 AS x, 9223372036854775800 + i % 3 AS y FROM generate_series(1, 90) AS i;
SELECT ag_fit('fl_big', 'y', '{"name": "fl_big", "problem_type": "multiclass", "verbosity": 0, "hyperparameters": {"LR": {}}}');
SELECT DISTINCT y, ag_predict_class('fl_big', t) AS class, ag_predict('fl_big', t, NULL::bigint) = y AS same, ag_predict('fl_big', t, NULL::numeric) AS number FROM fl_big AS t ORDER BY 1;
SELECT * FROM ag_confusion_matrix('fl_big', 'fl_big') WHERE n > 0;
SELECT value FROM ag_evaluate('fl_big', 'SELECT x, y::numeric AS y FROM fl_big') WHERE metric = 'accuracy';
SELECT ag_predict_proba('fl_big', fl_big, 9223372036854775801) > 0.5 AS likely FROM fl_big WHERE x = 1 LIMIT 1;
SELECT ag_predict_proba('fl_big', fl_big, 9223372036854775805) FROM fl_big LIMIT 1;
DROP TABLE fl_big;

DELETE FROM ag_predictor WHERE name LIKE 'fl\_%';
DROP FUNCTION fl_fit(text, text, jsonb);
DROP TABLE fl, fl_odd, fl_kinds, fl_null;
DROP TYPE fl_mood, fl_score;
