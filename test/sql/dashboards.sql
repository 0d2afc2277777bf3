-- what a dashboard does all day: averages of predictions, a materialised view of them refreshed while others read, models side by side
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 25, "learning_rate": 0.2}}}'
CREATE TABLE sales AS SELECT i AS id, date '2026-01-01' + i / 50 AS day, i % 37 AS x, (i * 7) % 31 AS z, (i % 37) * 3 + i % 5 AS y FROM generate_series(1, 500) i;
SELECT ag_fit('SELECT x, z, y FROM sales', 'y', :'quick'::jsonb || '{"name": "d"}');
SELECT ag_create_function('d', 'd_of', 'sales');

-- daily averages
SELECT count(*) AS days, bool_and(abs(a - b) < 3) AS near FROM (SELECT day, avg(ag_predict('d', s)) AS a, avg(y) AS b FROM sales s GROUP BY day) d;
-- the riskiest few, in a view, with the model's own function and a filter
CREATE VIEW top AS SELECT s.id, s.d_of AS predicted FROM sales s WHERE day > date '2026-01-03' ORDER BY predicted DESC, id LIMIT 3;
SELECT count(*) AS top, bool_and(predicted >= (SELECT max(d_of(s)) FROM sales s WHERE day > date '2026-01-03')) AS highest FROM (SELECT * FROM top LIMIT 1) t;

-- a materialised view, refreshed under its readers' eyes; a new version shows at the next refresh
CREATE MATERIALIZED VIEW predicted AS SELECT id, ag_predict('d', s) AS p FROM sales s;
CREATE UNIQUE INDEX ON predicted (id);
UPDATE sales SET x = 0 WHERE id = 1;
REFRESH MATERIALIZED VIEW CONCURRENTLY predicted;
SELECT p = ag_predict('d', s) AS fresh FROM predicted JOIN sales s USING (id) WHERE id = 1;
SELECT ag_fit('SELECT x, z, y + 1000 AS y FROM sales', 'y', :'quick'::jsonb || '{"name": "d"}');
SELECT bool_and(p < 500) AS old FROM predicted;
REFRESH MATERIALIZED VIEW CONCURRENTLY predicted;
SELECT bool_and(p > 500) AS new FROM predicted;
-- versions side by side
SELECT v, round(value) > 500 AS wrong FROM unnest(ARRAY['d@1', 'd@2']) v, ag_evaluate(v, 'sales') WHERE metric = 'root_mean_squared_error' ORDER BY v;
-- the planner puts the cheap filter first
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE l text; plan text := '';
BEGIN FOR l IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP plan := plan || l; END LOOP; RETURN plan; END $$;
SELECT plan_of($$SELECT id FROM sales s WHERE ag_predict('d', s) > 50 AND x = 3$$) ~ 'Filter: .*x = 3.*ag_predict' AS cheap_first;
DROP MATERIALIZED VIEW predicted;
DROP VIEW top;
DROP FUNCTION d_of, plan_of;
DROP TABLE sales;
SELECT ag_drop('d');
