-- Every type of column: what it becomes, that its values arrive whole, and what is left out.
SET client_min_messages = warning;
SET timezone = 'UTC';
CREATE FUNCTION ft_fit(data text, label text, options jsonb DEFAULT '{}') RETURNS text LANGUAGE sql AS
    $$ SELECT ag_fit(data, label, '{"hyperparameters": {"GBM": {"num_boost_round": 30, "min_data_in_leaf": 5}}, "verbosity": 1}' || options) $$;

CREATE TYPE ft_mood AS ENUM ('low', 'mid', 'high');
CREATE DOMAIN ft_percent AS numeric(5, 2) CHECK (VALUE >= 0);
CREATE DOMAIN ft_code AS varchar(10);
CREATE TYPE ft_pair AS (a int, b text);
CREATE TABLE ft AS
SELECT (i * 37) % 100 AS y,
    ((i * 37) % 100)::int2 AS i2, ((i * 37) % 100)::int4 AS i4, ((i * 37) % 100 + 9007199254740992)::int8 AS i8,
    ((i * 37) % 100)::float4 AS f4, ((i * 37) % 100)::float8 AS f8, ((i * 37) % 100 / 10.0)::numeric AS n,
    ((i * 37) % 100)::ft_percent AS percent, ((i * 37) % 100)::money AS price, (i * 37) % 100 > 50 AS b,
    'k' || (i * 37) % 10 AS t, ('k' || (i * 37) % 10)::ft_code AS code, ('k' || (i * 37) % 10)::char(8) AS c8,
    ('k' || (i * 37) % 10)::name AS nm, chr(65 + (i * 37) % 10)::"char" AS ch,
    (ARRAY['low', 'mid', 'high'])[1 + i % 3]::ft_mood AS mood, md5(((i * 37) % 10)::text)::uuid AS u,
    date '2024-01-01' + (i * 37) % 100 AS d, timestamp '2024-01-01' + make_interval(hours => (i * 37) % 100) AS ts,
    timestamptz '2024-01-01 00:00+00' + make_interval(hours => (i * 37) % 100) AS tz,
    time '00:00' + make_interval(mins => (i * 37) % 100) AS tod, (time '00:00' + make_interval(mins => (i * 37) % 100))::timetz AS todz,
    make_interval(hours => (i * 37) % 100) AS dur
FROM generate_series(1, 300) AS i;

-- one column at a time: each carries the label
SELECT attname, ft_fit(format('SELECT %I, y FROM ft', attname), 'y', jsonb_build_object('name', 'ft_' || attname))
FROM pg_attribute WHERE attrelid = 'ft'::regclass AND attnum > 1 ORDER BY attnum;
SELECT f.name, f.type, f.kind, f.used, f.became, f.missing FROM ag_predictor AS p JOIN ag_predictor_feature AS f ON f.predictor = p.id
WHERE p.name LIKE 'ft\_%' ORDER BY p.created_at;
SELECT 'numbers' AS columns, corr(ag_predict('ft_i2', r), y) > 0.98 AS i2, corr(ag_predict('ft_i4', r), y) > 0.98 AS i4,
    corr(ag_predict('ft_i8', r), y) > 0.98 AS i8, corr(ag_predict('ft_f4', r), y) > 0.98 AS f4, corr(ag_predict('ft_f8', r), y) > 0.98 AS f8,
    corr(ag_predict('ft_n', r), y) > 0.98 AS n, corr(ag_predict('ft_percent', r), y) > 0.98 AS percent,
    corr(ag_predict('ft_price', r), y) > 0.98 AS price, corr(ag_predict('ft_b', r), y) > 0.8 AS b FROM ft AS r;
SELECT 'times' AS columns, corr(ag_predict('ft_d', r), y) > 0.98 AS d, corr(ag_predict('ft_ts', r), y) > 0.98 AS ts,
    corr(ag_predict('ft_tz', r), y) > 0.98 AS tz, corr(ag_predict('ft_tod', r), y) > 0.98 AS tod, corr(ag_predict('ft_todz', r), y) > 0.98 AS todz,
    corr(ag_predict('ft_dur', r), y) > 0.98 AS dur FROM ft AS r;
-- numerics of more digits than a double or an int64 has
CREATE TABLE ft_digits AS SELECT (i * 7919) % 1009 / 1009.0 * (1 + i % 100) AS n, (i * 37) % 100 AS y FROM generate_series(1, 300) AS i;
SELECT ft_fit('ft_digits', 'y', '{"name": "ft_digits"}');
SELECT f.min = (SELECT min(n)::float8 FROM ft_digits) AS min, f.max = (SELECT max(n)::float8 FROM ft_digits) AS max
FROM ag_predictor AS p JOIN ag_predictor_feature AS f ON f.predictor = p.id WHERE p.name = 'ft_digits';
-- texts of ten levels say the last digit: all the same model
SELECT 'texts' AS columns, bool_and(ag_predict('ft_t', r) = ag_predict('ft_code', r)) AS code, bool_and(ag_predict('ft_t', r) = ag_predict('ft_c8', r)) AS c8,
    bool_and(ag_predict('ft_t', r) = ag_predict('ft_nm', r)) AS nm FROM ft AS r;

-- extremes survive the way: infinities, NaN, the ends of int8 and of time, NULLs
CREATE TABLE ft_extreme AS
SELECT i % 2 AS y, CASE i % 4 WHEN 0 THEN 'Infinity'::float8 WHEN 1 THEN '-Infinity' WHEN 2 THEN 'NaN' END AS f,
    CASE i % 2 WHEN 0 THEN 'Infinity'::float8 ELSE -1e308 END AS n,
    CASE i % 2 WHEN 0 THEN 9223372036854775807 ELSE -9223372036854775808 END AS big,
    CASE i % 2 WHEN 0 THEN 'infinity'::timestamptz ELSE '-infinity' END AS tz, CASE i % 2 WHEN 0 THEN 'infinity'::date ELSE '-infinity' END AS d,
    CASE i % 2 WHEN 0 THEN '294276-12-31 23:59:59.999999'::timestamp ELSE '4714-11-24 00:00:00 BC' END AS ts,
    NULL::int AS nothing
FROM generate_series(1, 100) AS i;
SELECT ft_fit('ft_extreme', 'y', '{"problem_type": "binary"}');
SELECT attname, ft_fit(format('SELECT %I, y FROM ft_extreme', attname), 'y', jsonb_build_object('name', 'ft_e_' || attname, 'problem_type', 'binary'))
FROM pg_attribute WHERE attrelid = 'ft_extreme'::regclass AND attnum BETWEEN 3 AND 7 ORDER BY attnum;
SELECT bool_and((ag_predict('ft_e_n', r) = y) AND (ag_predict('ft_e_big', r) = y) AND (ag_predict('ft_e_tz', r) = y)
    AND (ag_predict('ft_e_d', r) = y) AND (ag_predict('ft_e_ts', r) = y)) FROM ft_extreme AS r;

-- infinite numerics, which there are from 14 on
SELECT coalesce((SELECT ag_predict('ft_e_n', s) = ag_predict('ft_e_n', t) FROM (SELECT 'Infinity'::float8 AS n) t,
    (SELECT n::numeric FROM (SELECT 'Infinity' AS n WHERE current_setting('server_version_num')::int >= 140000 OFFSET 0) i) s), true) AS same;
-- long texts stay different where they differ; nothing is trimmed but char(n); empty is not NULL
CREATE TABLE ft_long AS
SELECT i % 2 AS y, repeat('x', 200000) || i % 2 AS t FROM generate_series(1, 60) AS i;
SELECT ft_fit('ft_long', 'y', '{"problem_type": "binary"}');
SELECT bool_and(ag_predict('ft_long_y', r) = y) FROM ft_long AS r;
CREATE TABLE ft_empty AS SELECT i % 3 AS y, (ARRAY['', ' ', NULL])[1 + i % 3] AS t FROM generate_series(1, 90) AS i;
SELECT ft_fit('ft_empty', 'y');
SELECT bool_and(ag_predict('ft_empty_y', r) = y) FROM ft_empty AS r;

-- a timestamptz is taken apart in one zone, at fit and ever after
CREATE TABLE ft_zone AS
SELECT tz, extract(hour FROM tz AT TIME ZONE 'Asia/Kathmandu') >= 12 AS y
FROM (SELECT timestamptz '2024-03-01 00:30+00' + i * interval '11 hours' AS tz FROM generate_series(1, 400) AS i) AS s;
SELECT ft_fit('ft_zone', 'y', '{"time_zone": "Asia/Kathmandu"}');
SELECT avg((ag_predict('ft_zone_y', r) = y::int)::int) > 0.95 AS learnt FROM ft_zone AS r;
SET timezone = 'America/St_Johns';
SET datestyle = 'German';
SELECT avg((ag_predict('ft_zone_y', r) = y::int)::int) > 0.95 AS learnt FROM ft_zone AS r;
RESET timezone;
RESET datestyle;

-- types that can't be features are left out with one warning, and the rest is learnt
CREATE TABLE ft_odd AS
SELECT i % 50 AS x, (i % 50) * 2.0 AS y, ('10.0.0.' || i % 200)::inet AS ip, jsonb_build_object('k', i) AS j, '{}'::json AS j0, ARRAY[i] AS arr,
    '\x00'::bytea AS bin, int4range(i, i + 5) AS rng, point(i, i) AS pt, B'101' AS bits, ROW(i, 'x')::ft_pair AS pair,
    to_tsvector('simple', 'w' || i) AS tsv, 'pg_class'::regclass AS rc, i::oid AS o
FROM generate_series(1, 200) AS i;
SELECT ft_fit('ft_odd', 'y');
SELECT corr(ag_predict('ft_odd_y', r), y) > 0.95 FROM ft_odd AS r;
SELECT ft_fit('SELECT x, j, y FROM ft_odd', 'y', '{"name": "ft_odd_one"}');
SELECT ft_fit('ft_odd', 'y', '{"verbosity": 0}');

DELETE FROM ag_predictor WHERE name LIKE 'ft\_%';
DROP FUNCTION ft_fit(text, text, jsonb);
DROP TABLE ft, ft_extreme, ft_long, ft_empty, ft_zone, ft_odd;
DROP TYPE ft_mood, ft_percent, ft_code, ft_pair;
