-- What ag_fit refuses, before it reads a row: data, label, name, options, transactions, rights.
SET client_min_messages = warning;
CREATE TABLE fe (a int, "Mixed Case" float8, y float8, "Y" float8, j json, note text);
INSERT INTO fe SELECT i, i, i % 10, i, '{}', 'n' || i % 3 FROM generate_series(1, 40) AS i;

-- a metric that is none, near one and far from all
SELECT ag_fit('fe', 'y', '{"eval_metric": "acuracy"}');
SELECT ag_fit('fe', 'y', '{"eval_metric": "auc"}');

-- NULLs
SELECT ag_fit(NULL, 'y');
SELECT ag_fit('fe', NULL);

-- data that is no data
SELECT ag_fit('fe_missing', 'y');
SELECT ag_fit('no_schema.fe', 'y');
SELECT ag_fit('fe; DROP TABLE fe', 'y');
SELECT ag_fit('', 'y');
SELECT ag_fit('"fe', 'y');
SELECT ag_fit('a.b.c.d', 'y');
SELECT ag_fit('pg_class_oid_index', 'y');
SELECT ag_fit('(SELECT 1) s; DROP TABLE fe', 'y', '{"name": "m"}');
SELECT ag_fit('SELECT * FROM fe; DROP TABLE fe', 'y', '{"name": "m"}');
SELECT ag_fit('SELECT 1 AS y; SELECT 2 AS y', 'y', '{"name": "m"}');
SELECT ag_fit('SELECT FROM WHERE', 'y', '{"name": "m"}');
SELECT ag_fit('WITH d AS (DELETE FROM fe RETURNING *) SELECT * FROM d', 'y', '{"name": "m"}');
SELECT ag_fit('WITH d AS (SELECT 1) DELETE FROM fe', 'y', '{"name": "m"}');
SELECT ag_fit('SELECT * INTO fe2 FROM fe', 'y', '{"name": "m"}');
SELECT ag_fit('SELECT * FROM fe FOR UPDATE', 'y', '{"name": "m"}');
SELECT ag_fit('SELECT a, y, a FROM fe', 'y', '{"name": "m"}');
SELECT ag_fit('SELECT FROM fe', 'y', '{"name": "m"}');
SELECT ag_fit('SELECT $1::int AS a, y FROM fe', 'y', '{"name": "m"}');
SELECT count(*) FROM fe;

-- functions in the query can't write either
CREATE FUNCTION fe_write() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO fe(a) VALUES (0); RETURN 1; END $$;
SELECT ag_fit('SELECT a, y, fe_write() AS w FROM fe', 'y', '{"name": "m"}');
SELECT count(*) FROM fe;
-- and afterwards the session may write again
INSERT INTO fe (a) VALUES (41); DELETE FROM fe WHERE a = 41;

-- errors of the query are the query's own
SELECT ag_fit('SELECT a, 1 / (a - 20) AS q, y FROM fe', 'y', '{"name": "m"}');

-- the label
SELECT ag_fit('fe', 'nothing');
SELECT ag_fit('fe', 'NOTE; DROP TABLE fe');
CREATE TABLE fe_case ("Ab" int, "aB" int, c int);
SELECT ag_fit('fe_case', 'ab');
SELECT ag_fit('fe', 'j');
SELECT ag_fit('SELECT y FROM fe', 'y', '{"name": "m"}');
SELECT ag_fit('SELECT y, j FROM fe', 'y', '{"name": "m", "verbosity": 0}');
SELECT ag_fit('fe', 'y', '{"ignored_columns": ["note", "missing"]}');
SELECT ag_fit('fe', 'y', '{"ignored_columns": ["note", "y"]}');

-- the name
SELECT ag_fit('SELECT * FROM fe', 'y');
SELECT ag_fit('fe', 'y', '{"name": ""}');
SELECT ag_fit('fe', 'y', '{"name": "a@1"}');
SELECT ag_fit('fe', 'y', '{"name": "a/b"}');
SELECT ag_fit('fe', 'y', jsonb_build_object('name', repeat('n', 64)));
CREATE TABLE fe_with_a_name_that_is_rather_long_but_still_fits_in_63_bytes (a int, the_label int);
SELECT ag_fit('fe_with_a_name_that_is_rather_long_but_still_fits_in_63_bytes', 'the_label');
CREATE TABLE "fe@home" (a int, y int);
SELECT ag_fit('"fe@home"', 'y');

-- options
SELECT ag_fit('fe', 'y', '[1]');
SELECT ag_fit('fe', 'y', '"fast"');
SELECT ag_fit('fe', 'y', '{"time_limt": 5}');
SELECT ag_fit('fe', 'y', '{"time_limit": 0}');
SELECT ag_fit('fe', 'y', '{"time_limit": "soon"}');
SELECT ag_fit('fe', 'y', '{"time_zone": "Mars/Olympus"}');
SELECT ag_fit('fe', 'y', '{"hyperparameters": {"GBM": {"num_leafs": 3}}}');

-- transactions
BEGIN READ ONLY;
SELECT ag_fit('fe', 'y');
ROLLBACK;

-- rights: those of the caller, on each column; and a name of another role
CREATE ROLE regress_fe_one;
CREATE ROLE regress_fe_two;
GRANT SELECT (a, y) ON fe TO regress_fe_one;
SET ROLE regress_fe_one;
SELECT ag_fit('fe', 'y');
SELECT ag_fit('TABLE fe', 'y', '{"name": "m"}');
SELECT ag_fit('SELECT a, y FROM fe', 'y', '{"name": "fe_of_one", "hyperparameters": {"GBM": {"num_boost_round": 5}}}');
RESET ROLE;
GRANT SELECT ON fe TO regress_fe_two;
SET ROLE regress_fe_two;
SELECT ag_fit('fe', 'y', '{"name": "fe_of_one"}');
RESET ROLE;

-- nothing was stored but that one
SELECT name, version, owner FROM ag_predictor WHERE name IN ('m', 'fe_y', 'fe_of_one');
DELETE FROM ag_predictor WHERE name = 'fe_of_one';
DROP FUNCTION fe_write();
DROP TABLE fe, fe_case, fe_with_a_name_that_is_rather_long_but_still_fits_in_63_bytes, "fe@home";
DROP ROLE regress_fe_one;
DROP ROLE regress_fe_two;
