-- ag_predict_interval: as wide as the errors on rows the models had not seen say, as SQL over ag_predict_oof has it
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 25, "learning_rate": 0.2}}}'
CREATE TABLE iv AS SELECT i AS id, i % 37 AS x, (i * 7) % 31 AS z, (i % 37) * 3 + (hashint4(i) & 1023) / 100.0 AS y, i % 3 = 0 AS b FROM generate_series(1, 1200) i;
SELECT ag_fit('SELECT x, z, y FROM iv WHERE id % 2 = 0', 'y', :'quick'::jsonb || '{"name": "m", "num_bag_folds": 4}');
SELECT ag_fit('SELECT x, z, y FROM iv', 'y', :'quick'::jsonb || '{"name": "bare", "save_space": true}');
SELECT ag_fit('SELECT x, z, b FROM iv', 'b', :'quick'::jsonb || '{"name": "class"}');
SELECT ag_fit('SELECT x, z, y FROM iv', 'y', :'quick'::jsonb || '{"name": "levels", "problem_type": "quantile", "quantile_levels": [0.1, 0.9]}');

CREATE TABLE errors AS SELECT e, row_number() OVER (ORDER BY e) AS rank, count(*) OVER () AS n FROM (SELECT abs(label::float8 - prediction::float8) AS e FROM ag_predict_oof('m')) s;
SELECT coverage, bool_and(abs((i[1] + i[2]) / 2 - ag_predict('m', t)) < 1e-9) AS centred, bool_and((i[2] - i[1]) / 2 BETWEEN e * 0.999999 AND e * 33 / 32) AS width
FROM iv t, unnest(ARRAY[0.5, 0.9, 0.99]) coverage, ag_predict_interval('m', t, coverage) i, errors WHERE rank = ceil((n + 1) * coverage) GROUP BY 1 ORDER BY 1;
-- whatever is asked for, it has six binary digits, and errors stay apart less than they are
SELECT bool_and(abs(x - round(x)) < 1e-6 AND x < 65) AS coarse, count(DISTINCT round(w::numeric, 6)) < (SELECT count(DISTINCT e) / 2 FROM errors) AS fewer FROM (SELECT w, w / 2 ^ (floor(log(2, w::numeric)) - 5) AS x
    FROM (SELECT (i[2] - i[1]) / 2 AS w FROM iv t, generate_series(1, 600) k, ag_predict_interval('m', t, k / 601.0 - 1e-6) i WHERE id = 1) s WHERE w > 0) s;
-- rows that no model saw are covered about as often as asked
SELECT coverage, abs(avg((y BETWEEN i[1] AND i[2])::int) - coverage) < 0.08 AS as_asked FROM iv t, unnest(ARRAY[0.5, 0.8, 0.95]) coverage, ag_predict_interval('m', t, coverage) i WHERE id % 2 = 1 GROUP BY coverage ORDER BY 1;
SELECT ag_predict_interval('m', t) = ag_predict_interval('m', to_jsonb(t), 0.9) AS jsonb, ag_predict_interval('m', t) = ag_predict_interval('m', '{"x": 1, "z": 7}', 0.9) AS text FROM iv t WHERE id = 1;
SELECT ag_predict_interval('m', t, 0.99999) AS unbounded FROM iv t WHERE id = 1;
SELECT ag_predict_interval('m', t, NULL) IS NULL AS none, ag_predict_interval('m', NULL::iv) IS NULL AS no_row FROM iv t WHERE id = 1;

-- where weights count in scores, rows count as much as they weigh: here those whose numbers are all over the place
CREATE TABLE iw AS SELECT id, x, z, y, CASE WHEN y >= 540 THEN 1 ELSE 9 END AS w FROM (SELECT i AS id, i % 37 AS x, (i * 7) % 31 AS z,
    (i % 37) * 30.0 + (hashint4(i) & 1023) / CASE WHEN i % 37 < 18 THEN 40.0 ELSE 1000.0 END AS y FROM generate_series(1, 1200) i) s;
SELECT ag_fit('SELECT x, z, y, w FROM iw WHERE id % 2 = 0', 'y', :'quick'::jsonb || '{"name": "weighed", "num_bag_folds": 4, "sample_weight": "w", "weight_evaluation": true}');
SELECT ag_fit('SELECT x, z, y, w FROM iw WHERE id % 2 = 0', 'y', :'quick'::jsonb || '{"name": "not_weighed", "num_bag_folds": 4, "sample_weight": "w"}');
CREATE TABLE weighed_errors AS SELECT model, e, sum(w) OVER (PARTITION BY model ORDER BY e) AS up_to, sum(w) OVER (PARTITION BY model) * (1 + 1.0 / count(*) OVER (PARTITION BY model)) AS total FROM (
    SELECT 'weighed' AS model, abs(label::float8 - prediction::float8) AS e, CASE WHEN label::float8 >= 540 THEN 1 ELSE 9 END AS w FROM ag_predict_oof('weighed')
    UNION ALL SELECT 'not_weighed', abs(label::float8 - prediction::float8), 1 FROM ag_predict_oof('not_weighed')) s;
SELECT model, coverage, bool_and((i[2] - i[1]) / 2 BETWEEN e * 0.999999 AND e * 33 / 32) AS width FROM (SELECT * FROM iw WHERE id < 20) t, unnest(ARRAY[0.5, 0.8, 0.9, 0.99]) coverage, unnest(ARRAY['weighed', 'not_weighed']) model,
    ag_predict_interval(model, t, coverage) i, LATERAL (SELECT min(e) AS e FROM weighed_errors s WHERE s.model = model.model AND up_to >= coverage * total) s GROUP BY 1, 2 ORDER BY 1, 2;
-- so they are covered as often as asked by weight, where counting rows would be too narrow
SELECT model, abs(sum(w) FILTER (WHERE y BETWEEN i[1] AND i[2]) / sum(w)::float8 - 0.8) < 0.06 AS as_asked FROM iw t, unnest(ARRAY['weighed', 'not_weighed']) model, ag_predict_interval(model, t, 0.8) i WHERE id % 2 = 1 GROUP BY 1 ORDER BY 1;
SELECT ag_predict_interval('weighed', t, 0.9999) AS unbounded FROM iw t WHERE id = 1;

SELECT ag_predict_interval('m', t, 1) FROM iv t LIMIT 1;
SELECT ag_predict_interval('m', t, 0) FROM iv t LIMIT 1;
SELECT ag_predict_interval('m', t, 'NaN') FROM iv t LIMIT 1;
SELECT ag_predict_interval('m/GBM_BAG_L1', t) FROM iv t LIMIT 1;
SELECT ag_predict_interval('bare', t) FROM iv t LIMIT 1;
SELECT ag_predict_interval('class', t) FROM iv t LIMIT 1;
SELECT ag_predict_interval('levels', t) FROM iv t LIMIT 1;
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE iv, iw, errors, weighed_errors;
