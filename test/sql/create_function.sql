-- functions in language ag_model: typed, granted, dumped like any other
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 60, "learning_rate": 0.1}}}'
CREATE TABLE customer AS SELECT i AS id, i % 50 AS visits, (ARRAY['web', 'shop'])[1 + i % 2] AS channel, CASE WHEN i % 50 > 25 THEN 'stays' ELSE 'goes' END::varchar(9) AS churn,
    (i % 50) * 3 AS spent, i % 50 > 10 AS member FROM generate_series(1, 400) i;
SELECT ag_fit('SELECT visits, channel, churn FROM customer', 'churn', :'quick'::jsonb || '{"name": "churn"}');
SELECT ag_fit('SELECT visits, channel, spent FROM customer', 'spent', :'quick'::jsonb || '{"name": "spent"}');
SELECT ag_fit('SELECT visits, channel, member FROM customer', 'member', :'quick'::jsonb || '{"name": "member"}');
SET client_min_messages = notice;
SELECT ag_create_function('churn', 'predict_churn', 'customer');
SELECT ag_create_function('spent', '"Predict Spent"', 'customer');
SELECT ag_create_function('member', 'public.predict_member', 'customer');
SELECT p.oid::regprocedure AS name, p.prorettype::regtype AS returns, l.lanname AS language, provolatile, proparallel, prosrc
FROM pg_proc p JOIN pg_language l ON l.oid = prolang WHERE l.lanname = 'ag_model' ORDER BY p.proname COLLATE "C";

SELECT bool_and(c.predict_churn = ag_predict_class('churn', c)) AS attribute, bool_and(predict_churn(c) = ag_predict_class('churn', c)) AS call,
    bool_and("Predict Spent"(c) = round(ag_predict('spent', c))) AS number, bool_and(predict_member(c)::int = ag_predict('member', c)) AS boolean
FROM customer c;
SELECT predict_churn(NULL) IS NULL AS no_row;
CREATE INDEX ON customer (predict_churn(customer));
CREATE VIEW with_churn AS SELECT id, predict_churn(c) AS churn FROM customer c;
SELECT count(*) AS rows FROM with_churn WHERE churn IN ('stays', 'goes');

-- a relation without the label: the type it had at the fit; a version; another schema
CREATE TABLE prospect (channel text, visits bigint);
INSERT INTO prospect VALUES ('web', 3);
CREATE SCHEMA "Other";
SELECT ag_create_function('spent@1', '"Other".spend', 'prospect');
SELECT pg_typeof("Other".spend(p)) AS type FROM prospect p;
-- and where the column of that name is something else
CREATE TABLE odd (visits int, channel text, churn date);
SELECT ag_create_function('churn', 'odd_churn', 'odd');
SELECT pg_typeof(odd_churn(o)) AS type FROM (SELECT (NULL::odd).*) o;

-- for its owner alone until granted; a domain's CHECK is not run in parallel workers
CREATE DOMAIN outcome AS text CHECK (VALUE <> '');
CREATE TABLE domained (visits int, channel text, churn outcome);
SELECT ag_create_function('churn', 'domained_churn', 'domained');
SELECT proname, proparallel, has_function_privilege('public', p.oid, 'EXECUTE') AS everybody
FROM pg_proc p WHERE proname IN ('domained_churn', 'predict_churn') ORDER BY proname;

-- what can't be
SELECT ag_create_function('churn', 'predict_churn', 'customer');
SELECT ag_create_function('nobody', 'x', 'customer');
SELECT ag_create_function('churn', 'a.b.c.d', 'customer');
SELECT ag_create_function('churn', '', 'customer');
SELECT ag_create_function('churn', 'x', 0);
SELECT ag_create_function('churn', 'x"; DROP TABLE customer; --', 'customer');
SELECT ag_create_function('churn', '"x""; DROP TABLE customer; --"', 'customer');
CREATE TABLE stranger (visits int, churn text);
SELECT ag_create_function('churn', 'x', 'stranger');
DROP TABLE stranger;
CREATE FUNCTION bad(int) RETURNS text LANGUAGE ag_model AS 'churn';
CREATE FUNCTION bad(customer, int) RETURNS text LANGUAGE ag_model AS 'churn';
CREATE FUNCTION bad(customer) RETURNS SETOF text LANGUAGE ag_model AS 'churn';
CREATE FUNCTION bad(customer) RETURNS trigger LANGUAGE ag_model AS 'churn';
CREATE FUNCTION bad(customer) RETURNS text LANGUAGE ag_model AS 'nobody';
CREATE FUNCTION bad(customer) RETURNS text LANGUAGE ag_model AS '';
DO LANGUAGE ag_model 'churn';

-- what a dump restores before the models, and by hand
SET check_function_bodies = off;
CREATE FUNCTION later(customer) RETURNS text LANGUAGE ag_model STABLE AS 'later';
RESET check_function_bodies;
SELECT later(c) FROM customer c LIMIT 1;
CREATE FUNCTION of_json(jsonb) RETURNS text LANGUAGE ag_model STABLE AS 'churn';
CREATE FUNCTION of_text(text) RETURNS text LANGUAGE ag_model STABLE AS 'churn';
SELECT of_json('{"visits": 40, "channel": "web"}') AS json, of_text('{"visits": 4, "channel": "web"}') AS text;

-- it is replaced and follows the model like ag_predict
CREATE OR REPLACE FUNCTION of_json(jsonb) RETURNS text LANGUAGE ag_model STABLE AS 'member';
SELECT of_json('{"visits": 40, "channel": "web"}');
SELECT ag_drop('member');
SELECT of_json('{"visits": 40, "channel": "web"}');

SET client_min_messages = warning;
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE customer, prospect, odd, domained CASCADE;
DROP DOMAIN outcome;
DROP SCHEMA "Other" CASCADE;
DROP FUNCTION of_json, of_text;
