-- ag_explain: Shapley values, as SQL over ag_predict computes them by their definition
SET client_min_messages = warning;
\set trees '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 30, "learning_rate": 0.2, "min_data_in_leaf": 2}}}'
\set linear '{"verbosity": 0, "hyperparameters": {"LR": {}}}'
-- at most 64 rows: then all of them are the background
CREATE TABLE x AS SELECT i % 13 AS a, 'k' || i % 4 AS b, CASE WHEN i % 5 > 0 THEN date '2024-01-01' + (i * 11) % 50 END AS c, i * 0.5 AS spare,
    (i % 13) * 2.0 + (i % 4) * (i * 11 % 50) AS y, CASE WHEN (i % 13) + (i % 4) * 5 > 12 THEN 'hi' WHEN i % 13 > 9 THEN 'mid' ELSE 'lo' END AS s,
    (i % 13) * (i % 4) > 10 AS t
    FROM generate_series(1, 60) i;
SELECT ag_fit('SELECT a, b, c, y FROM x', 'y', :'trees'::jsonb || '{"name": "reg"}');
SELECT ag_fit('SELECT a, b, c, y FROM x', 'y', :'linear'::jsonb || '{"name": "lin"}');
SELECT ag_fit('SELECT a, b, c, y FROM x', 'y', '{"name": "ens", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20}, "LR": {}, "KNN": {}}}');
SELECT ag_fit('SELECT a, b, c, t FROM x', 't', :'trees'::jsonb || '{"name": "bin"}');
SELECT ag_fit('SELECT a, b, c, s FROM x', 's', :'trees'::jsonb || '{"name": "multi"}');

-- v(S): the mean over the training rows, with the columns of S from the row explained
CREATE FUNCTION value_of(model text, class text, r x, in_a boolean, in_b boolean, in_c boolean) RETURNS float8 LANGUAGE sql AS $$
    SELECT avg(CASE WHEN class IS NULL THEN ag_predict(model, m) ELSE ag_predict_proba(model, m, class) END)
    FROM (SELECT CASE WHEN in_a THEN r.a ELSE x.a END AS a, CASE WHEN in_b THEN r.b ELSE x.b END AS b, CASE WHEN in_c THEN r.c ELSE x.c END AS c FROM x) m
$$;
CREATE FUNCTION by_definition(model text, class text, r x) RETURNS TABLE (feature text, contribution float8) LANGUAGE sql AS $$
    WITH v AS MATERIALIZED (SELECT a, b, c, a::int + b::int + c::int AS size, value_of(model, class, r, a, b, c) AS v
        FROM unnest(ARRAY[false, true]) a, unnest(ARRAY[false, true]) b, unnest(ARRAY[false, true]) c)
    SELECT NULL, v FROM v WHERE size = 0
    UNION ALL SELECT 'a', sum((i.v - o.v) * CASE o.size WHEN 1 THEN 1 / 6.0 ELSE 1 / 3.0 END) FROM v i, v o WHERE i.a AND NOT o.a AND (i.b, i.c) = (o.b, o.c)
    UNION ALL SELECT 'b', sum((i.v - o.v) * CASE o.size WHEN 1 THEN 1 / 6.0 ELSE 1 / 3.0 END) FROM v i, v o WHERE i.b AND NOT o.b AND (i.a, i.c) = (o.a, o.c)
    UNION ALL SELECT 'c', sum((i.v - o.v) * CASE o.size WHEN 1 THEN 1 / 6.0 ELSE 1 / 3.0 END) FROM v i, v o WHERE i.c AND NOT o.c AND (i.a, i.b) = (o.a, o.b)
$$;
SELECT m, count(*) AS rows, bool_and(abs(d.contribution - e.contribution) < 1e-9 * (1 + abs(d.contribution))) AS as_defined
FROM unnest(ARRAY['reg', 'lin', 'ens']) m, (SELECT * FROM x WHERE spare < 3) x, by_definition(m, NULL, x) d, ag_explain(m, x) e
WHERE d.feature IS NOT DISTINCT FROM e.feature GROUP BY m ORDER BY m;
SELECT m, count(*) AS rows, bool_and(abs(d.contribution - e.contribution) < 1e-9) AS as_defined
FROM (VALUES ('bin', 'true'), ('multi', 'hi'), ('multi', 'lo')) AS v (m, k), (SELECT * FROM x WHERE spare < 3) x, by_definition(m, k, x) d, ag_explain(m, x, k) e
WHERE d.feature IS NOT DISTINCT FROM e.feature GROUP BY m, k ORDER BY m, k;

-- they sum to the prediction; without a class, of the positive or the predicted one
SELECT bool_and(abs(e.s - ag_predict('reg', x)) < 1e-9) AS reg FROM x, LATERAL (SELECT sum(contribution) AS s FROM ag_explain('reg', x)) e;
SELECT bool_and(abs(e.s - ag_predict_proba('bin', x, true)) < 1e-9) AS bin FROM x, LATERAL (SELECT sum(contribution) AS s FROM ag_explain('bin', x)) e;
SELECT bool_and(abs(e.s - ag_predict_proba('multi', x, ag_predict_class('multi', x))) < 1e-9) AS multi
FROM x, LATERAL (SELECT sum(contribution) AS s FROM ag_explain('multi', x)) e;

-- values as they were given, in the order of the columns; columns that the model doesn't use are no part of it
SELECT feature, value FROM x, ag_explain('reg', x) WHERE spare = 2.5;
SELECT feature, value FROM ag_explain('reg', '{"a": 7.50, "b": "new", "c": null, "z": [1]}'::jsonb);
SELECT count(DISTINCT (j.contribution, t.contribution)) = count(*) AND bool_and(j.contribution = t.contribution) AS same
FROM ag_explain('reg', '{"a": 7, "b": "k1", "c": "2024-01-05"}'::jsonb) j, ag_explain('reg', '{"a": 7, "b": "k1", "c": "2024-01-05"}') t WHERE j.feature = t.feature;
SELECT count(*) FROM ag_explain(NULL, '{}'::jsonb);

-- what can't be
SELECT * FROM x, ag_explain('reg', x, 'hi');
SELECT * FROM x, ag_explain('multi', x, 'high');
SELECT * FROM ag_explain('reg', '{"a": 1}');
SELECT * FROM ag_explain('nobody', '{"a": 1}');

-- many columns: sampled, but the same each time, and they add up; what counts is found
CREATE TABLE wide AS SELECT i % 7 AS c1, i % 11 AS c2, i % 13 AS c3, i * 3 % 17 AS c4, i * 5 % 19 AS c5, i * 7 % 23 AS c6, i * 11 % 29 AS c7, i * 13 % 31 AS c8,
    i * 17 % 37 AS c9, i * 19 % 41 AS c10, i * 23 % 43 AS c11, i % 11 > 5 AND i % 7 > 2 AS y FROM generate_series(1, 600) i;
SELECT ag_fit('wide', 'y', :'trees'::jsonb || '{"name": "wide"}');
SELECT bool_and(abs(e.s - ag_predict_proba('wide', wide, true)) < 1e-9) AS adds_up, bool_and(two @> '{c1,c2}') AS found
FROM (SELECT * FROM wide WHERE c2 > 5 LIMIT 20) wide, LATERAL (SELECT sum(contribution) AS s, (array_agg(feature ORDER BY abs(contribution) DESC) FILTER (WHERE feature > ''))[:2] AS two
    FROM ag_explain('wide', wide)) e;
SELECT count(*) FROM (SELECT * FROM (SELECT * FROM wide LIMIT 5) wide, ag_explain('wide', wide) EXCEPT SELECT * FROM (SELECT * FROM wide LIMIT 5) wide, ag_explain('wide', wide)) d;
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP FUNCTION by_definition, value_of;
DROP TABLE x, wide;
