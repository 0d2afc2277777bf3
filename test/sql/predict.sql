-- ag_predict: columns by name, whatever else the row has
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 60, "learning_rate": 0.1}}}'
CREATE TABLE flat AS
    SELECT i % 50 AS size, (ARRAY['harbour', 'hill', 'park'])[1 + i % 3] AS district, 7 AS constant, NULL::text AS void,
        date '2020-01-01' + i % 40 AS built, (i % 50) * 2.0 + (i % 3) * 10 AS rent
    FROM generate_series(1, 600) i;
SELECT ag_fit('flat', 'rent', :'quick'::jsonb || '{"name": "rent"}');

-- it has learnt something, and every row gets a finite number
SELECT corr(ag_predict('rent', f), f.rent) > 0.95 AS learnt, count(ag_predict('rent', f)) = count(*) AS everywhere,
    bool_and(ag_predict('rent', f) NOT IN ('NaN', 'Infinity', '-Infinity')) AS finite
FROM flat f;

-- order of columns, further columns, the label or its absence make no difference
SELECT bool_and(ag_predict('rent', f) = ag_predict('rent', x)) AS other_order,
    bool_and(ag_predict('rent', f) = ag_predict('rent', y)) AS without_label,
    bool_and(ag_predict('rent', f) = ag_predict('rent', z)) AS more_columns
FROM flat f,
    LATERAL (SELECT f.rent, f.built, f.district, f.void, f.constant, f.size) x,
    LATERAL (SELECT f.size, f.district, f.built) y,
    LATERAL (SELECT NULL::float8 AS rent, '{}'::json AS j, f.district, f.size, f.built, random() AS r) z;

-- what training threw away need not be there; what it uses must, and all that is missing is named at once
SELECT ag_predict('rent', s) IS NOT NULL AS ok FROM (SELECT 12 AS size, 'hill' AS district, date '2020-01-09' AS built) s;
SELECT ag_predict('rent', s) FROM (SELECT 'hill' AS district) s;
SELECT ag_predict('rent', s) FROM (SELECT 12 AS "Size", 'hill' AS district, date '2020-01-09' AS built) s;
SELECT ag_predict('rent', ROW(12, 'hill', date '2020-01-09'));
SELECT ag_predict('rent', s) FROM (SELECT 12 AS size, 13 AS size, 'hill' AS district, date '2020-01-09' AS built) s;

-- other types for the same values
SELECT bool_and(p = ag_predict('rent', a)) AS bigint_varchar_timestamp, bool_and(p = ag_predict('rent', b)) AS numeric_text,
    bool_and(p = ag_predict('rent', c)) AS all_text
FROM (SELECT f.*, ag_predict('rent', f) AS p FROM flat f) f,
    LATERAL (SELECT f.size::bigint AS size, f.district::varchar(20) AS district, f.built::timestamp AS built) a,
    LATERAL (SELECT f.size::numeric AS size, f.district, f.built::text AS built) b,
    LATERAL (SELECT f.size::text AS size, f.district::text AS district, f.built::text AS built) c;
SELECT ag_predict('rent', s) FROM (SELECT 'twelve' AS size, 'hill' AS district, date '2020-01-09' AS built) s;

-- NULL and what training never saw are input like any other
SELECT bool_and(ag_predict('rent', s) BETWEEN -50 AND 200) AS within
FROM (VALUES (NULL::int, NULL::text, NULL::date), (12, 'moon', '2020-01-09'), (NULL, 'hill', NULL), (-2147483648, '', '0044-03-15 BC'),
    (2147483647, repeat('z', 40000), 'infinity')) s (size, district, built);

-- a NULL row (here of an outer join) gives NULL, a row of NULLs does not
SELECT ag_predict('rent', f) IS NULL AS no_row FROM (VALUES (1)) v (i) LEFT JOIN flat f ON false;
SELECT ag_predict(NULL, f) IS NULL AS no_model FROM flat f LIMIT 1;
SELECT ag_predict('rent', NULL::flat) IS NULL AS null_row, ag_predict('rent', NULL) IS NULL AS null_text;

-- wherever an expression may stand
CREATE TABLE answer (size int, p float8);
SELECT count(*) BETWEEN 100 AND 500 AS in_where FROM flat f WHERE ag_predict('rent', f) > 50;
WITH c AS (SELECT size, district, built FROM flat LIMIT 10) INSERT INTO answer SELECT c.size, ag_predict('rent', c) FROM c;
UPDATE answer SET p = ag_predict('rent', f) FROM flat f WHERE f.size = answer.size AND f.district = 'hill';
SELECT count(*) AS updated, bool_and(p IS NOT NULL) AS filled FROM answer;
CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.rent := ag_predict('rent', NEW); RETURN NEW; END $$;
CREATE TRIGGER fill BEFORE INSERT ON flat FOR EACH ROW EXECUTE FUNCTION fill();
INSERT INTO flat (size, district, built) VALUES (10, 'hill', '2020-01-20'), (NULL, NULL, NULL) RETURNING rent IS NOT NULL AS filled;

-- a column that has its alias's name wins over the row
CREATE TABLE f AS SELECT 12 AS size, 'hill' AS district, date '2020-01-09' AS built, 'me' AS f;
SELECT ag_predict('rent', f) FROM f;
SELECT ag_predict('rent', f.*) IS NOT NULL AS ok FROM f;

-- one member of the ensemble, one version
SELECT ag_predict('rent/GBM', s) = ag_predict('rent@1/GBM', s) AS same
FROM (SELECT 12 AS size, 'hill' AS district, date '2020-01-09' AS built) s;
SELECT ag_predict('rent/NOPE', s) FROM (SELECT 12 AS size, 'hill' AS district, date '2020-01-09' AS built) s;
SELECT ag_predict('rent@1/GBM@1', s) FROM (SELECT 12 AS size, 'hill' AS district, date '2020-01-09' AS built) s;
SELECT ag_predict('rent@7', s) FROM (SELECT 12 AS size) s;
SELECT ag_predict('rant', s) FROM (SELECT 12 AS size) s;
SELECT ag_predict(m, s) FROM (SELECT 12 AS size) s, unnest(ARRAY['']) m;
SELECT ag_predict(m, s) FROM (SELECT 12 AS size) s, unnest(ARRAY['rent@']) m;
SELECT ag_predict(m, s) FROM (SELECT 12 AS size) s, unnest(ARRAY['rent@x']) m;
SELECT ag_predict(m, s) FROM (SELECT 12 AS size) s, unnest(ARRAY['rent/']) m;
SELECT ag_predict(m, s) FROM (SELECT 12 AS size) s, unnest(ARRAY['rent@99999999999999999999']) m;

-- serial and parallel plans agree, in a read-only transaction too
CREATE TABLE sums AS SELECT round(sum(ag_predict('rent', f))::numeric, 6) AS s FROM flat f;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
-- (but for what newer servers say of the model: costs.sql)
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP IF line !~ 'Model: ' THEN RETURN NEXT line; END IF; END LOOP; END $$;
BEGIN READ ONLY;
SELECT plan('SELECT sum(ag_predict(''rent'', f)) FROM flat f');
SELECT round(sum(ag_predict('rent', f))::numeric, 6) = (SELECT s FROM sums) AS same FROM flat f;
COMMIT;

SELECT ag_drop('rent');
DROP TABLE flat, answer, f, sums;
DROP FUNCTION fill(), plan(text);
