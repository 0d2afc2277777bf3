-- ag_in_test, ag_fit_summary, ag_prewarm
SET client_min_messages = warning;
-- about the fraction, and no more than chance allows; a larger test set holds the smaller; keys as number, text or uuid
SELECT f, abs(avg(ag_in_test(i, f)::int) - f) < 0.01 AS share FROM generate_series(1, 20000) i, unnest(ARRAY[0, 0.01, 0.2, 0.5, 1]) f GROUP BY f ORDER BY f;
SELECT count(*) FROM generate_series(1, 1000) i WHERE ag_in_test(i, 0.2) AND NOT ag_in_test(i, 0.3);
SELECT count(*) FROM generate_series(1, 1000) i WHERE ag_in_test(i, 0.2) <> ag_in_test(i::text, 0.2);
SELECT count(*) FROM (SELECT md5(i::text)::uuid AS u FROM generate_series(1, 1000) i) s WHERE ag_in_test(u, 0.2) <> ag_in_test(u::text, 0.2);
-- the rule never changes
SELECT array_agg(i) FROM generate_series(-3, 40) i WHERE ag_in_test(i, 0.2);
SELECT ag_in_test('customer 7', 0.5), ag_in_test(NULL::text, 0.5) IS NULL AS unknown;
SELECT ag_in_test(1, 1.5);
SELECT ag_in_test('a', 'NaN');
CREATE TABLE h (id bigint PRIMARY KEY, x int, y float8, split boolean GENERATED ALWAYS AS (ag_in_test(id, 0.25)) STORED, same int);
INSERT INTO h (id, x, y, same) SELECT i, i % 17, (i % 17) * 2, 1 FROM generate_series(1, 400) i;
SELECT ag_fit('SELECT x, y, same FROM h WHERE NOT split', 'y', '{"name": "h", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20}, "LR": {}}}');
SELECT item, CASE WHEN item IN ('validation score', 'seconds', 'models', 'best model', 'columns', 'device') THEN 'known' ELSE value END AS value FROM ag_fit_summary('h');
SELECT value = (SELECT best_model FROM ag_models WHERE name = 'h') AS best FROM ag_fit_summary('h@1') WHERE item = 'best model';
SELECT value ~ '^[A-Z][A-Za-z_0-9]* -?[0-9.]+(, [A-Z][A-Za-z_0-9]* -?[0-9.]+)*$' AS models FROM ag_fit_summary('h') WHERE item = 'models';
SELECT ag_prewarm('h'), ag_prewarm('h/GBM');
SELECT ag_prewarm('nobody');
SELECT * FROM ag_fit_summary('nobody');
SELECT ag_drop('h');
DROP TABLE h;
