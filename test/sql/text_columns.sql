-- Columns of text: what is read off them, what the catalogue says of it, and the presets that leave it out.
SET client_min_messages = warning;
CREATE TABLE tc AS
SELECT i AS id, CASE WHEN i % 2 = 0 THEN 'yes' ELSE 'no' END AS liked,
    (ARRAY['a very ', 'the most ', 'quite a '])[1 + i % 3] || CASE WHEN i % 2 = 0 THEN 'good ' ELSE 'bad ' END
        || (ARRAY['film', 'book', 'play', 'song'])[1 + i / 2 % 4] || ' number ' || i || CASE WHEN i % 5 = 0 THEN '!' ELSE '' END AS review,
    (i * 37 % 100) / 4.0 || CASE WHEN i % 3 = 0 THEN ' km/kg' ELSE ' kmpl' END AS mileage,
    to_char(timestamp '2020-01-01' + make_interval(hours => i * 5), 'MM/DD/YYYY HH24:MI') AS seen,
    timestamp '2020-01-03' + make_interval(hours => i * 5, mins => i % 7) AS sold,
    'id-' || i AS code
FROM generate_series(1, 400) AS i;
SET client_min_messages = notice;
SELECT ag_fit('SELECT liked, review, mileage, seen, sold, code FROM tc', 'liked', '{"name": "tc", "hyperparameters": {"GBM": {"num_boost_round": 20}}, "verbosity": 0}');
SET client_min_messages = warning;
SELECT f.name, f.kind, f.used, regexp_replace(f.became, '\d+ (coord|n-gram)', 'N \1', 'g') AS became, f.dropped_why
FROM ag_predictor AS p JOIN ag_predictor_feature AS f ON f.predictor = p.id WHERE p.name = 'tc' ORDER BY f.ordinal;
-- the words decide; a review never seen, one without a known word, an empty one, none
SELECT ag_predict_class('tc', r) AS liked FROM (VALUES (1, 'This is a VERY GOOD film!'), (2, 'the most bad song')) AS v(i, review),
    LATERAL (SELECT v.review, '12.5 kmpl' AS mileage, '01/05/2020 13:00' AS seen, timestamp '2020-01-07' AS sold) AS r ORDER BY i;
SELECT bool_and(ag_predict_proba('tc', r, 'yes') BETWEEN 0 AND 1) AS in_range
FROM unnest(ARRAY['zzz', '', NULL, repeat('good film ', 20000), E'\u00e4\u4e2d ']) AS review,
    LATERAL (SELECT review, 'many miles' AS mileage, 'yesterday' AS seen, NULL::timestamp AS sold) AS r;
-- an explanation has one row a column
SELECT feature, contribution <> 0 AS counts FROM ag_explain('tc', (SELECT t FROM tc AS t WHERE id = 2)) ORDER BY feature;

-- without words: a review that is always another one is left out
SELECT ag_fit('SELECT liked, review, mileage FROM tc', 'liked', '{"name": "tc2", "presets": ["medium", "ignore_text"], "hyperparameters": {"GBM": {"num_boost_round": 20}}, "verbosity": 0}');
SELECT ag_fit('SELECT liked, review, mileage FROM tc', 'liked', '{"name": "tc3", "_feature_generator_kwargs": {"enable_text_ngram_features": false}, "hyperparameters": {"GBM": {"num_boost_round": 20}}, "verbosity": 0}');
SELECT p.name AS model, f.name, f.kind, f.became, f.dropped_why
FROM ag_predictor AS p JOIN ag_predictor_feature AS f ON f.predictor = p.id WHERE p.name IN ('tc2', 'tc3') ORDER BY 1, f.ordinal;
SELECT ag_fit('tc', 'liked', '{"_feature_generator_kwargs": {"enable_text_ngrams": true}}');
SELECT ag_fit('tc', 'liked', '{"_feature_generator_kwargs": {"enable_vision_features": true}}');
SELECT ag_fit('tc', 'liked', '{"_feature_generator_kwargs": {"text_ngram_params": {"max_features": 0}}}');
-- digits at the end of a few names are a part of them; a number that stands first is one
SELECT ag_fit('SELECT ''c'' || i % 5 AS name, (i % 4 + 1) * 8 || '' GB'' AS size, i % 5 + i % 4 AS y FROM generate_series(1, 300) i', 'y', '{"name": "tc_names", "verbosity": 0, "problem_type": "regression", "hyperparameters": {"GBM": {"num_boost_round": 5}}}');
SELECT feature, became FROM ag_features WHERE model = 'tc_names' ORDER BY ordinal;
SELECT ag_drop('tc_names');
