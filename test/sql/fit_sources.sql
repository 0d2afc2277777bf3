-- Where rows may come from: every kind of table, views, queries, with what the caller sees of them.
SET client_min_messages = warning;
CREATE FUNCTION fs_fit(data text, label text, options jsonb DEFAULT '{}') RETURNS text LANGUAGE sql AS
    $$ SELECT ag_fit(data, label, '{"hyperparameters": {"GBM": {"num_boost_round": 20}}, "verbosity": 1}' || options) $$;
CREATE TABLE fs (x int, y float8);
INSERT INTO fs SELECT i % 50, (i % 50) * 2.0 FROM generate_series(1, 300) AS i;

-- does the model of that name predict 2 x ?
CREATE FUNCTION fs_good(model text) RETURNS boolean LANGUAGE sql AS
    $$ SELECT corr(ag_predict(model, t), t.y) > 0.95 FROM fs AS t $$;

SELECT fs_fit('fs', 'y');
SELECT fs_good('fs_y');
SELECT fs_fit('FS', 'Y') AS folded, fs_fit('public.fs', 'y', '{"name": "fs_qualified"}');
SELECT version FROM ag_predictor WHERE name = 'fs_y' ORDER BY 1;

CREATE VIEW fs_view AS SELECT * FROM fs;
CREATE MATERIALIZED VIEW fs_matview AS SELECT * FROM fs;
CREATE TABLE fs_parts (x int, y float8) PARTITION BY RANGE (x);
CREATE TABLE fs_parts_low PARTITION OF fs_parts FOR VALUES FROM (0) TO (25);
CREATE TABLE fs_parts_high (y float8, extra int, x int); -- columns in another order
ALTER TABLE fs_parts_high DROP COLUMN extra;
ALTER TABLE fs_parts ATTACH PARTITION fs_parts_high FOR VALUES FROM (25) TO (100);
INSERT INTO fs_parts SELECT * FROM fs;
CREATE TEMP TABLE fs_temp AS SELECT * FROM fs;
CREATE UNLOGGED TABLE fs_unlogged AS SELECT * FROM fs;
CREATE TABLE fs_parent (x int);
CREATE TABLE fs_child (y float8, z int) INHERITS (fs_parent);
INSERT INTO fs_child SELECT x, y, 0 FROM fs;
SELECT fs_fit(t, 'y') FROM unnest(ARRAY['fs_view', 'fs_matview', 'fs_parts', 'fs_temp', 'fs_unlogged', 'fs_child']) AS t;
SELECT m, fs_good(m) FROM unnest(ARRAY['fs_view_y', 'fs_matview_y', 'fs_parts_y', 'fs_temp_y', 'fs_unlogged_y', 'fs_child_y']) AS m;

-- names as SQL quotes them; a column named like the usual alias
CREATE SCHEMA "fs Sales";
CREATE TABLE "fs Sales"."Q1 ""2024"" (t)" AS SELECT x AS t, y AS "Y größer", 'x' AS "select" FROM fs;
SELECT fs_fit('"fs Sales"."Q1 ""2024"" (t)"', 'y GRößER', '{"name": "fs_quoted"}');
SELECT fs_fit('"fs Sales"."Q1 ""2024"" (t)"', 'Y größer');
CREATE TABLE "values" AS SELECT * FROM fs;
SELECT fs_fit('values', 'y');

-- dropped, added, generated and identity columns
CREATE TABLE fs_columns (gone int, x int, id int GENERATED ALWAYS AS IDENTITY, y float8, p float8 GENERATED ALWAYS AS (y * 3) STORED);
INSERT INTO fs_columns (x, y) SELECT x, y FROM fs;
ALTER TABLE fs_columns DROP COLUMN gone, ADD COLUMN added int DEFAULT 7;
SELECT fs_fit('fs_columns', 'p', '{"ignored_columns": ["y"]}');
SELECT corr(ag_predict('fs_columns_p', t), t.p) > 0.95 FROM fs_columns AS t;
SELECT f.name, used, dropped_why FROM ag_predictor_feature AS f JOIN ag_predictor AS p ON p.id = f.predictor
WHERE p.name = 'fs_columns_p' ORDER BY ordinal;

-- queries
SELECT fs_fit(q, 'y', format('{"name": "fs_q%s"}', n)::jsonb)
FROM unnest(ARRAY[
    'SELECT * FROM fs', 'select x, y from fs where x > 3;', E'  -- a comment\n /* another */ SELECT x, y FROM fs',
    'WITH w AS (SELECT * FROM fs) SELECT * FROM w', 'TABLE fs', '(SELECT x, y FROM fs)',
    'SELECT x, y FROM fs UNION ALL SELECT x, y FROM fs_view', 'SELECT a.x, b.y FROM fs AS a JOIN (SELECT DISTINCT * FROM fs) AS b USING (x)'
  ]) WITH ORDINALITY AS q(q, n);
SELECT n, fs_good('fs_q' || n) FROM generate_series(1, 8) AS n;
SELECT fs_fit('VALUES (1, 2.0), (2, 4.0), (3, 6.0), (4, 8.0), (5, 10.0), (6, 12.0), (7, 14.0), (8, 16.0), (9, 18.0), (10, 20.0), (11, 22.0), (12, 24.0)',
              'column2', '{"name": "fs_values"}');

-- what the caller sees: uncommitted rows, row-level security, search_path
BEGIN;
UPDATE fs SET y = -y;
SELECT fs_fit('fs', 'y', '{"name": "fs_uncommitted"}');
ROLLBACK;
SELECT count(*) FROM ag_predictor WHERE name = 'fs_uncommitted';
BEGIN;
CREATE TABLE fs_new AS SELECT x, -y AS y FROM fs;
SELECT fs_fit('fs_new', 'y');
COMMIT;
SELECT avg(ag_predict('fs_new_y', t)) < 0 AS negative FROM fs AS t;

CREATE ROLE regress_fs;
GRANT SELECT ON fs TO regress_fs;
ALTER TABLE fs ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON fs TO regress_fs USING (x < 10);
SET ROLE regress_fs;
SELECT fs_fit('fs', 'y', '{"name": "fs_policy"}');
RESET ROLE;
SELECT rows FROM ag_predictor WHERE name = 'fs_policy';
ALTER TABLE fs DISABLE ROW LEVEL SECURITY;
DROP POLICY few ON fs;
CREATE FUNCTION fs_definer() RETURNS text LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public
    AS $$ SELECT ag_fit('fs_matview', 'y', '{"name": "fs_definer", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20}}}') $$;
SET ROLE regress_fs;
SELECT fs_fit('fs_matview', 'y', '{"name": "fs_denied"}');
SELECT fs_definer();
RESET ROLE;

-- a fit that fails leaves its transaction as it found it
DO $$
BEGIN
    PERFORM ag_fit('fs', 'y', '{"name": "fs_failed", "problem_type": "binary"}');
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING '% %', SQLSTATE, SQLERRM;
END $$;
SELECT count(*) FROM ag_predictor WHERE name = 'fs_failed';

DELETE FROM ag_predictor WHERE name LIKE 'fs%' OR name IN ('values_y', 'q1 "2024" (t)_y größer');
DROP FUNCTION fs_definer(), fs_good(text), fs_fit(text, text, jsonb);
DROP VIEW fs_view;
DROP MATERIALIZED VIEW fs_matview;
DROP TABLE fs_parts, fs_temp, fs_unlogged, fs_child, fs_parent, fs_columns, fs_new, "values", fs;
DROP SCHEMA "fs Sales" CASCADE;
DROP ROLE regress_fs;
