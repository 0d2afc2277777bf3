-- permutation importance: what the score loses when a column is shuffled
CREATE TABLE imp AS SELECT i % 10 AS strong, (i / 10) % 7 AS weak, (i * 7919) % 101 AS nothing, 'x' AS constant,
    date '2024-01-01' + i % 30 AS day, (i % 10) * 10.0 + (i / 10) % 7 AS y FROM generate_series(1, 2000) i;
SET client_min_messages = warning;
SELECT ag_fit('imp', 'y', '{"hyperparameters": {"GBM": {}}}');
SELECT feature, importance > 0 AS helps, p_value < 0.01 AS sure, n, p99_low <= importance AND importance <= p99_high AS inside
FROM ag_feature_importance('imp_y', 'imp') WHERE feature IN ('strong', 'weak');
-- one row a column that the model uses, the strongest first; a constant column is no feature
SELECT count(*), count(*) FILTER (WHERE feature = 'constant') AS constants, (array_agg(feature))[1:2] AS first_two
FROM ag_feature_importance('imp_y', 'imp');
-- the fall is the one that SQL over a shuffled table would show: shuffling what the model doesn't need changes nothing
SELECT abs(importance) < 1 AS about_nothing FROM ag_feature_importance('imp_y', 'imp', features => ARRAY['nothing']);
-- repeatable, and one shuffle has no spread
SELECT a.importance = b.importance AS repeats, c.stddev IS NULL AND c.p_value IS NULL AND c.p99_low IS NULL AS no_spread, c.n
FROM ag_feature_importance('imp_y', 'imp') a, ag_feature_importance('imp_y', 'imp') b,
    ag_feature_importance('imp_y', 'TABLE imp', 500, 1) c
WHERE a.feature = 'strong' AND b.feature = 'strong' AND c.feature = 'strong';
SELECT * FROM ag_feature_importance(NULL, 'imp');
SELECT * FROM ag_feature_importance('imp_y', 'imp', 0);
SELECT * FROM ag_feature_importance('imp_y', 'imp', num_shuffle_sets => 100000);
SELECT * FROM ag_feature_importance('imp_y', 'imp', features => ARRAY['weak', 'wek']);
SELECT * FROM ag_feature_importance('imp_y', 'SELECT * FROM imp WHERE y < 0');
SELECT * FROM ag_feature_importance('imp_z', 'imp');
DROP TABLE imp;
SELECT ag_drop('imp_y');
