-- CAT combines categories: learns what a pair says and neither of it alone; predicted a row and many rows at a time, and explained
SET client_min_messages = warning;
CREATE TABLE pairs AS
    SELECT i AS id, 'a' || i * 7 % 23 AS a, CASE WHEN i * 13 % 17 > 0 THEN 'b' || i * 5 % 29 END AS b, 'c' || i * 3 % 5 AS c, (i * 29 % 97)::float8 AS n,
        hashint4((i * 7 % 23) * 100 + CASE WHEN i * 13 % 17 > 0 THEN i * 5 % 29 ELSE 99 END) & 3 AS v
    FROM generate_series(1, 8000) i;
CREATE FUNCTION fit_cat(model text, label text, params jsonb) RETURNS void LANGUAGE sql AS $$
    SELECT ag_fit(format('SELECT a, b, c, n, %s AS y FROM pairs WHERE id %% 4 < 3', label), 'y', jsonb_build_object('name', model, 'verbosity', 0,
        'hyperparameters', jsonb_build_object('CAT', '{"iterations": 80, "learning_rate": 0.3}' || params)))
$$;
SELECT fit_cat('single', 'v < 2', '{"max_ctr_complexity": 1}'), fit_cat('pair', 'v < 2', '{"max_ctr_complexity": 2}'), fit_cat('number', 'v + 0.5', '{}');
SELECT avg((ag_predict_class('pair', p) = (v < 2)::text)::int) > 0.95 AS pair_learns, avg((ag_predict_class('single', p) = (v < 2)::text)::int) < 0.85 AS single_does_not,
    avg((ag_predict('number', p) - v - 0.5) ^ 2) < 0.3 AS number_learns
FROM pairs p WHERE id % 4 = 3;
-- many rows at once as one by one; levels that nobody saw and NULLs
SELECT count(*), bool_and(t.value = ag_predict('number', p)) AS same FROM ag_predict_table('number', 'pairs', 'id') t JOIN pairs p ON p.id::text = t.key;
SELECT ag_predict_proba('pair', r, true) BETWEEN 0 AND 1 AS defined
FROM (VALUES ('new', 'b1', 'c1', 1.0::float8), (NULL, NULL, NULL, NULL), ('a1', 'new', NULL, 1e300)) r (a, b, c, n);
-- a combination's share is its columns'
SELECT bool_and(abs(e.s - ag_predict_proba('pair', p, true)) < 1e-9) AS sums, bool_and(e.a * e.b <> 0) AS shared
FROM (SELECT * FROM pairs ORDER BY id LIMIT 4) p,
    LATERAL (SELECT sum(contribution) AS s, sum(contribution) FILTER (WHERE feature = 'a') AS a, sum(contribution) FILTER (WHERE feature = 'b') AS b FROM ag_explain('pair', p, 'true')) e;
-- what a model is asked for
SELECT fit_cat('none', 'v', '{"max_ctr_complexity": 9}');
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
