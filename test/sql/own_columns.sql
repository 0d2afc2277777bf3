-- Columns that models make for themselves, of their training rows' labels; and that labels of pure noise show no skill anywhere.
SET client_min_messages = warning;
CREATE FUNCTION oc_random(i int, what text, n int) RETURNS int LANGUAGE sql IMMUTABLE AS
    $$ SELECT (('x' || substr(md5(i || what), 1, 7))::bit(28)::int % n) $$;
CREATE TABLE oc AS
SELECT i, 'c' || oc_random(i, 'c', 300) AS c, 'd' || oc_random(i, 'd', 60) AS d, oc_random(i, 'v', 1000) / 10.0 AS v,
    (SELECT string_agg('w' || oc_random(i, 'w' || k, 400), ' ') FROM generate_series(1, 12) AS k) AS words,
    oc_random(i, 'y', 2) AS y FROM generate_series(1, 1500) AS i;

-- a category of many levels, words, and noise
SELECT ag_fit('SELECT c, d, v, words, y FROM oc', 'y', '{"name": "oc_noise", "verbosity": 0, "eval_metric": "roc_auc", "num_bag_folds": 4,
    "hyperparameters": {"GBM": {"num_boost_round": 60}, "LR": {}, "CAT": {"iterations": 30}, "RF": {"n_estimators": 50}},
    "ag_args_fit": {"prep_params": [["OOFTargetEncodingFeatureGenerator", {}], ["CategoricalInteractionFeatureGenerator", {}], ["GroupByFeatureGenerator", {}]]}}');
SELECT model, score_val BETWEEN 0.44 AND 0.56 AS shows_no_skill FROM ag_leaderboard('oc_noise') ORDER BY fit_order;

-- a label that pairs of levels decide: it takes the pairs' means to learn it
CREATE TABLE oc_pairs AS SELECT d, 'e' || i % 9 AS e, v, oc_random(0, d || i % 9, 100) + v / 100 AS y FROM oc;
SELECT ag_fit('oc_pairs', 'y', '{"name": "oc_plain", "verbosity": 0, "hyperparameters": {"LR": {}}, "fit_weighted_ensemble": false}');
SELECT ag_fit('oc_pairs', 'y', '{"name": "oc_crossed", "verbosity": 0, "fit_weighted_ensemble": false,
    "hyperparameters": {"LR": {"ag.prep_params": ["OOFTargetEncodingFeatureGenerator", "CategoricalInteractionFeatureGenerator"]}}}');
SELECT crossed.value < 0.7 * plain.value AS crossed_is_better
FROM ag_evaluate('oc_plain', 'oc_pairs') AS plain, ag_evaluate('oc_crossed', 'oc_pairs') AS crossed
WHERE plain.metric = 'root_mean_squared_error' AND crossed.metric = plain.metric;
-- row by row and many at once; levels never seen; one row of an explanation a column
SELECT bool_and(abs(ag_predict('oc_crossed', p) - t.value) < 1e-9) AS same
FROM (SELECT row_number() OVER () AS key, * FROM oc_pairs LIMIT 50) AS p
    JOIN ag_predict_table('oc_crossed', 'SELECT row_number() OVER () AS key, * FROM oc_pairs LIMIT 50', 'key') AS t ON t.key = p.key::text;
SELECT ag_predict('oc_crossed', '{"d": "new", "e": null, "v": 3}') IS NOT NULL AS answers;
SELECT feature FROM ag_explain('oc_crossed', (SELECT p FROM oc_pairs AS p LIMIT 1)) ORDER BY 1;

SELECT ag_fit('oc', 'y', '{"ag_args_fit": {"prep_params": ["OOFTargetEncoding"]}}');
SELECT ag_fit('oc', 'y', '{"ag_args_fit": {"prep_params": [["ArithmeticFeatureGenerator", {}]]}}');
SELECT ag_fit('oc', 'y', '{"hyperparameters": {"GBM": {"ag.prep_params": [["GroupByFeatureGenerator", {"keys": 1}]]}}}');
-- a direction holds beside what is made of words
SELECT ag_fit('SELECT d, v, words, y + v AS z FROM oc', 'z', '{"name": "oc_up", "verbosity": 0, "monotone_constraints": {"v": 1},
    "hyperparameters": {"GBM": {"num_boost_round": 40}}}');
SELECT bool_and(p >= before) AS rises FROM (SELECT ag_predict('oc_up', r) AS p, lag(ag_predict('oc_up', r)) OVER (ORDER BY r.v) AS before
    FROM (SELECT 'd1' AS d, v * 0.5 AS v, 'w1 w2' AS words FROM generate_series(0, 200) AS v) AS r) AS s;
