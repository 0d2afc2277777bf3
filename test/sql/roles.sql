-- columns that are no features: sample weights and groups
SET client_min_messages = warning;
-- half of the rows say one thing and weigh nothing to speak of
CREATE TABLE weighed AS SELECT i % 40 AS x, CASE WHEN i % 2 = 0 THEN i % 40 ELSE 1000 END AS y, CASE WHEN i % 2 = 0 THEN 1.0 ELSE 1e-6 END AS w,
    'c' || (i % 40) / 8 AS c, i % 40 AS "X"
FROM (SELECT (j / 2) * 2 + j % 2 AS i FROM generate_series(0, 1199) AS j) AS s;
UPDATE weighed SET x = (x / 2) * 2;
ALTER TABLE weighed DROP COLUMN "X";
SELECT ag_fit('weighed', 'y', '{"name": "w", "verbosity": 0, "sample_weight": "W", "hyperparameters": {"GBM": {"num_boost_round": 200}, "LR": {}}}');
SELECT avg(ag_predict('w/GBM', t)) < 60 AS gbm, avg(ag_predict('w/LR', t)) < 60 AS lr FROM weighed AS t;
SELECT ag_info('w') -> 'features' AS features;
SELECT ag_predict('w/GBM', '{"x": 10, "c": "c1"}') < 60 AS without_weight;
SELECT ag_fit('weighed', 'y', '{"name": "u", "verbosity": 0, "ignored_columns": "w", "hyperparameters": {"GBM": {"num_boost_round": 200}}}');
SELECT avg(ag_predict('u', t)) > 400 AS unweighted FROM weighed AS t;
-- classes alike: the rare one is seen
CREATE TABLE unlike AS SELECT i % 97 AS x, (i * 7) % 89 AS z, i % 50 = 0 AS y FROM generate_series(1, 3000) i;
SELECT ag_fit('unlike', 'y', '{"name": "balanced", "verbosity": 0, "sample_weight": "balance_weight", "hyperparameters": {"LR": {}}}');
SELECT avg(ag_predict_proba('balanced', t, true)) BETWEEN 0.3 AND 0.7 AS balanced FROM unlike AS t;
-- what can't be
SELECT ag_fit('weighed', 'y', '{"name": "no", "sample_weight": "nothing"}');
SELECT ag_fit('weighed', 'y', '{"name": "no", "sample_weight": "y"}');
SELECT ag_fit('weighed', 'y', '{"name": "no", "sample_weight": "c"}');
SELECT ag_fit('weighed', 'y', '{"name": "no", "sample_weight": 3}');
SELECT ag_fit('weighed', 'y', '{"name": "no", "verbosity": 0, "sample_weight": "balance_weight"}');
SELECT ag_fit('SELECT *, -w AS minus FROM weighed', 'y', '{"name": "no", "verbosity": 0, "sample_weight": "minus"}');
SELECT ag_fit('SELECT *, nullif(w, 1) AS some FROM weighed', 'y', '{"name": "no", "verbosity": 0, "sample_weight": "some"}');
SELECT ag_fit('SELECT *, 0 AS zero FROM weighed', 'y', '{"name": "no", "verbosity": 0, "sample_weight": "zero"}');
SELECT ag_fit('SELECT w, y FROM weighed', 'y', '{"name": "no", "verbosity": 0, "sample_weight": "w"}');

-- groups: ten rows of each person, who alone says what y is; across persons nothing can be known
CREATE TABLE persons AS SELECT g AS person, g AS x, ('x' || md5(g::text))::bit(16)::int AS y FROM generate_series(1, 60) AS g, generate_series(1, 10);
SELECT ag_fit('persons', 'y', '{"name": "leaky", "verbosity": 0, "eval_metric": "r2", "num_bag_folds": 4, "ignored_columns": ["person"], "hyperparameters": {"KNN": {}}}');
SELECT ag_fit('persons', 'y', '{"name": "grouped", "verbosity": 0, "eval_metric": "r2", "num_bag_folds": 4, "groups": "person", "hyperparameters": {"KNN": {}}}');
SELECT ag_fit('persons', 'y', '{"name": "held", "verbosity": 0, "eval_metric": "r2", "groups": "person", "hyperparameters": {"KNN": {}}}');
SELECT name, score_val > 0.9 AS knows FROM ag_models WHERE name IN ('leaky', 'grouped', 'held') ORDER BY name;
SELECT ag_info('grouped') -> 'features' AS features;
SELECT ag_fit('SELECT *, 1 AS one FROM persons', 'y', '{"name": "no", "verbosity": 0, "groups": "one"}');
SELECT ag_fit('persons', 'y', '{"name": "no", "verbosity": 0, "groups": "person", "sample_weight": "person"}');

SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE weighed, unlike, persons;
