-- a row as a record, as jsonb, as JSON text; literals, parameters, prepared statements
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 60, "learning_rate": 0.1}}}'
CREATE TABLE form AS SELECT i % 50 AS x, (i % 4)::text AS k, i % 2 = 0 AS b, timestamp '2024-02-03 04:05' + i % 30 * interval '1 hour' AS t,
    (i % 50) * 2.0 + i % 4 AS y FROM generate_series(1, 400) i;
SELECT ag_fit('form', 'y', :'quick'::jsonb || '{"name": "form"}');
SELECT ag_fit('form', 'y', :'quick'::jsonb || '{"name": "42"}');
CREATE VIEW v AS SELECT x, k, b, t FROM form;

SELECT bool_and(p = ag_predict('form', to_jsonb(v))) AS jsonb, bool_and(p = ag_predict('form', to_jsonb(v)::text)) AS text,
    bool_and(p = ag_predict('form', jsonb_build_object('x', x::text, 'k', k::int, 'b', b::text, 't', t, 'more', '[1]'::jsonb))) AS other_types
FROM (SELECT *, ag_predict('form', v) AS p FROM v) v;
SELECT ag_predict('form', '{"x": 5, "k": "1", "b": true, "t": "2024-02-03 05:05"}') = ag_predict('form', s) AS literal
FROM (SELECT 5 AS x, '1' AS k, true AS b, timestamp '2024-02-03 05:05' AS t) s;
SELECT ag_predict('form', '{"x": null, "k": null, "b": null, "t": null}') IS NOT NULL AS nulls;

-- what is wrong is said
SELECT ag_predict('form', '{"x": 5}');
SELECT ag_predict('form', '{"x": {"y": 1}, "k": 1, "b": true, "t": null}');
SELECT ag_predict('form', '{"x": "five", "k": 1, "b": true, "t": null}');
SELECT ag_predict('form', '[1, 2]'::jsonb);
SELECT ag_predict('form', '5'::jsonb);
SELECT ag_predict('form', '[1, 2]');
SELECT ag_predict('form', 'five');
SELECT ag_predict('form', '{"x": 5,');

-- untyped parameters and generic plans; a model named like a number is a name
PREPARE untyped AS SELECT ag_predict($1, $2) IS NOT NULL AS ok;
EXECUTE untyped('form', '{"x": 5, "k": 1, "b": true, "t": null}');
EXECUTE untyped('42', '{"x": 5, "k": 1, "b": true, "t": null}');
EXECUTE untyped(NULL, NULL);
PREPARE by_row (text, int) AS SELECT ag_predict($1, r) IS NOT NULL AS ok FROM (SELECT $2 AS x, '1' AS k, true AS b, now()::timestamp AS t) r;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_row('form', 10);
EXECUTE by_row('42', NULL);
ALTER TABLE form ADD COLUMN w int DEFAULT 3;
PREPARE whole AS SELECT count(ag_predict('form', f)) FROM form f;
EXECUTE whole;
ALTER TABLE form DROP COLUMN w, ADD COLUMN z text;
EXECUTE whole;
ALTER TABLE form RENAME COLUMN x TO xx;
EXECUTE whole;
ALTER TABLE form RENAME COLUMN xx TO x;
EXECUTE whole;
RESET plan_cache_mode;

-- a model that changes from row to row
SELECT bool_and(ag_predict(m, v) = ag_predict('form', v)) AS same FROM v, unnest(ARRAY['form', '42', 'form@1', '42@1']) m;

-- more models than one place keeps, and no room to keep them
SET ag_pg.model_cache_size = 0;
SELECT count(*) AS rows, bool_and(ag_predict(m, v) = ag_predict('form', v)) AS same
FROM (SELECT *, row_number() OVER () AS n FROM v) v,
    LATERAL (SELECT repeat('0', n::int % 12) AS z) z, LATERAL (SELECT CASE WHEN n % 2 = 0 THEN 'form' ELSE '42' END || '@' || z || '1' AS m) m;
RESET ag_pg.model_cache_size;

-- a domain over a row type, a composite column, an array's element
CREATE TYPE pair AS (x int, k text, b boolean, t timestamp);
CREATE DOMAIN known AS pair CHECK ((VALUE).x IS NOT NULL);
CREATE TABLE nested AS SELECT ROW(x, k, b, t)::pair AS one, ARRAY[ROW(x, k, b, t)::pair] AS many, ROW(x, k, b, t)::pair::known AS d FROM v;
SELECT bool_and(ag_predict('form', one) = ag_predict('form', many[1])) AS array_element,
    bool_and(ag_predict('form', one) = ag_predict('form', d)) AS domain, bool_and(ag_predict('form', one) IS NOT NULL) AS some FROM nested;

-- wide values
SELECT count(DISTINCT ag_predict('form', s)) AS one_answer FROM (SELECT 5 AS x, repeat('long ', 100000) || i % 2 AS k, true AS b, NULL::timestamp AS t
    FROM generate_series(1, 10) i) s;

-- an instant is what it is, whatever the session's zone and style
SET timezone = 'UTC';
CREATE TABLE instant AS SELECT timestamptz '2024-03-01 00:30+00' + i * interval '7 hours' AS at,
    extract(hour FROM timestamptz '2024-03-01 00:30+00' + i * interval '7 hours')::int AS y FROM generate_series(1, 400) i;
SELECT ag_fit('instant', 'y', :'quick'::jsonb || '{"name": "instant", "problem_type": "regression"}');
CREATE TABLE before AS SELECT at, ag_predict('instant', i) AS p FROM instant i;
SET timezone = 'Asia/Kathmandu';
SET datestyle = 'German';
SELECT bool_and(p = ag_predict('instant', i)) AS record, bool_and(p = ag_predict('instant', to_jsonb(i))) AS json
FROM before JOIN instant i USING (at);
RESET timezone;
RESET datestyle;

SELECT ag_drop('form') AS form, ag_drop('42') AS "42", ag_drop('instant') AS instant;
DROP TABLE form, instant, before, nested CASCADE;
DROP DOMAIN known;
DROP TYPE pair;
