-- classifiers: the class, its probability, and what a numeric or boolean label adds
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 60, "learning_rate": 0.1}}}'
CREATE TABLE visit AS
    SELECT i % 60 AS pages, (ARRAY['ad', 'search'])[1 + i % 2] AS source,
        CASE WHEN i % 60 > 40 THEN 'buys "now"' WHEN i % 60 > 20 THEN 'returns' ELSE '' END AS outcome,
        i % 60 > 30 AS long, (i % 60) / 20 AS level, (ARRAY[1.5, 2, 10])[1 + (i % 60) / 20] AS price
    FROM generate_series(1, 600) i;
CREATE VIEW v AS SELECT pages, source FROM visit;
SELECT ag_fit('SELECT pages, source, outcome FROM visit', 'outcome', :'quick'::jsonb || '{"name": "outcome"}');
SELECT ag_fit('SELECT pages, source, long FROM visit', 'long', :'quick'::jsonb || '{"name": "long"}');
SELECT ag_fit('SELECT pages, source, level FROM visit', 'level', :'quick'::jsonb || '{"name": "level"}');
SELECT ag_fit('SELECT pages, source, price FROM visit', 'price', :'quick'::jsonb || '{"name": "price", "problem_type": "multiclass"}');
SELECT ag_fit('SELECT pages, pages * 2.5 AS cost FROM visit', 'cost', :'quick'::jsonb || '{"name": "cost", "problem_type": "regression"}');
SELECT name, problem_type FROM ag_models ORDER BY name COLLATE "C";

SELECT avg((ag_predict_class('outcome', t) = outcome)::int) > 0.95 AS text_label,
    avg((ag_predict_class('long', t)::boolean = long)::int) > 0.95 AS boolean_label,
    avg((ag_predict_class('level', t)::int = level)::int) > 0.95 AS integer_label,
    avg((ag_predict_class('price', t)::numeric = price)::int) > 0.95 AS numeric_label
FROM visit t;
SELECT c FROM (SELECT DISTINCT ag_predict_class('outcome', v) AS c FROM v) s ORDER BY c COLLATE "C";
SELECT c FROM (SELECT DISTINCT ag_predict_class('price', v) AS c FROM v) s ORDER BY c COLLATE "C";

-- ag_predict gives a number where the label is one: true is 1
SELECT DISTINCT ag_predict('long', v) AS p FROM v ORDER BY p;
SELECT DISTINCT ag_predict('price', v) AS p FROM v ORDER BY p;
SELECT ag_predict('outcome', v) FROM v LIMIT 1;
SELECT ag_predict_class('cost', v) FROM v LIMIT 1;
SELECT ag_predict_proba('cost', v) FROM v LIMIT 1;

-- probabilities: every class, they add up, the predicted class has the highest
SELECT class FROM (SELECT 5 AS pages, 'ad' AS source) t, jsonb_object_keys(ag_predict_proba('outcome', t)) class ORDER BY class COLLATE "C";
SELECT bool_and(abs(sum - 1) < 1e-9) AS add_up, bool_and(top) AS top_is_predicted
FROM (SELECT sum(p.value::float8), bool_or(p.key = ag_predict_class('outcome', v) AND p.value::float8 >= ALL
        (SELECT q.value::float8 FROM jsonb_each_text(ag_predict_proba('outcome', v)) q)) AS top
    FROM (SELECT *, row_number() OVER () AS n FROM visit LIMIT 50) v, jsonb_each_text(ag_predict_proba('outcome', v)) p GROUP BY v.n) s;

-- one class, named in any type that means it; exactly the number in the JSON
SELECT bool_and((ag_predict_proba('outcome', v) ->> 'returns')::float8 = ag_predict_proba('outcome', v, 'returns')) AS by_text,
    bool_and((ag_predict_proba('long', v) ->> 'true')::float8 = ag_predict_proba('long', v, true)) AS by_boolean,
    bool_and((ag_predict_proba('level', v) ->> '2')::float8 = ag_predict_proba('level', v, 2)) AS by_integer,
    bool_and((ag_predict_proba('price', v) ->> '10')::float8 = ag_predict_proba('price', v, 10.00)) AS by_numeric,
    bool_and((ag_predict_proba('price', v) ->> '1.5')::float8 = ag_predict_proba('price', v, '1.5'::varchar)) AS by_name
FROM v;
SELECT ag_predict_proba('outcome', v, 'sings') FROM v LIMIT 1;
SELECT ag_predict_proba('level', v, 7) FROM v LIMIT 1;
SELECT ag_predict_proba('outcome', v, NULL::text) IS NULL AS no_class FROM v LIMIT 1;

-- typed by a sample
SELECT pg_typeof(ag_predict('cost', v, NULL::int)) AS a, pg_typeof(ag_predict('outcome', v, NULL::text)) AS b,
    pg_typeof(ag_predict('long', v, NULL::boolean)) AS c, pg_typeof(ag_predict('price', v, NULL::numeric)) AS d FROM v LIMIT 1;
CREATE TYPE outcome AS ENUM ('', 'buys "now"', 'returns');
CREATE DOMAIN small AS int CHECK (VALUE < 1000);
SELECT bool_and(ag_predict('cost', v, NULL::int) = round(ag_predict('cost', v))::int) AS rounded,
    bool_and(ag_predict('cost', v, 0.0::float8) = ag_predict('cost', v)) AS same,
    bool_and(ag_predict('cost', v, NULL::small) = round(ag_predict('cost', v))::int) AS domain,
    bool_and(ag_predict('outcome', v, NULL::outcome)::text = ag_predict_class('outcome', v)) AS enum,
    bool_and(ag_predict('long', v, NULL::boolean)::text = ag_predict_class('long', v)) AS boolean,
    bool_and(ag_predict('long', v, NULL::int) = ag_predict('long', v)) AS one_or_zero
FROM v;
SELECT ag_predict('outcome', v, NULL::date) FROM v LIMIT 1;
SELECT ag_predict('outcome', NULL::v, NULL::text) IS NULL AS no_row;

SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE visit CASCADE;
DROP TYPE outcome;
DROP DOMAIN small;
