-- confusion matrix, ROC, precision-recall, calibration, lift, thresholds: the values that SQL over the predictions gives
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 25, "learning_rate": 0.1}}}'
CREATE TABLE q AS SELECT i % 37 AS x, (i * 7) % 31 AS z, (i % 37) + (i * 13) % 23 > 30 AS b,
    CASE WHEN (i % 37) + (i * 13) % 11 > 30 THEN 'high' WHEN (i * 7) % 31 + (i * 5) % 7 > 18 THEN 'mid' ELSE 'low' END AS c, i * 0.5 AS y FROM generate_series(1, 700) i;
SELECT ag_fit('SELECT x, z, b FROM q', 'b', :'quick'::jsonb || '{"name": "two"}');
SELECT ag_fit('SELECT x, z, c FROM q', 'c', :'quick'::jsonb || '{"name": "three"}');
SELECT ag_fit('SELECT x, z, y FROM q', 'y', :'quick'::jsonb || '{"name": "number"}');
SET client_min_messages = notice;
CREATE VIEW p AS SELECT b AS t, ag_predict_proba('two', q, true) AS p FROM q;

SELECT count(*) AS pairs, sum(n) AS rows, bool_and(m.n = (SELECT count(*) FROM q WHERE q.c = m.actual AND ag_predict_class('three', q) = m.predicted)) AS as_sql_has_it
FROM ag_confusion_matrix('three', 'q') m;
SELECT actual, predicted, n > 0 AS some FROM ag_confusion_matrix('two', 'SELECT x, z, CASE WHEN x < 30 THEN b::text ELSE ''perhaps'' END AS b FROM q');
SELECT count(*) AS pairs, sum(n) AS rows FROM ag_confusion_matrix('three', 'SELECT * FROM q WHERE c = ''mid''');

SELECT count(*) = (SELECT count(DISTINCT p) + 1 FROM p) AS points, bool_and(r.tpr IS NOT DISTINCT FROM (SELECT count(*) FILTER (WHERE t AND p >= threshold) / (count(*) FILTER (WHERE t))::float8 FROM p)
    AND r.fpr IS NOT DISTINCT FROM (SELECT count(*) FILTER (WHERE NOT t AND p >= threshold) / (count(*) FILTER (WHERE NOT t))::float8 FROM p)) AS as_sql_has_it FROM ag_roc_curve('two', 'q') r;
SELECT abs(area - value) < 1e-12 AS area_is_the_metric
FROM (SELECT sum((fpr - last_fpr) * (tpr + last_tpr) / 2) AS area FROM (SELECT *, lag(fpr) OVER w AS last_fpr, lag(tpr) OVER w AS last_tpr FROM ag_roc_curve('two', 'q')
    WINDOW w AS (ORDER BY threshold DESC)) s) a, ag_evaluate('two', 'q') WHERE metric = 'roc_auc';
SELECT count(*) = (SELECT count(DISTINCT p) + 1 FROM p) AS points, bool_and(threshold = 'Infinity' OR r.recall = (SELECT count(*) FILTER (WHERE t AND p >= threshold) / (count(*) FILTER (WHERE t))::float8 FROM p)
    AND r.precision = (SELECT count(*) FILTER (WHERE t) / count(*)::float8 FROM p WHERE p >= threshold)) AS as_sql_has_it FROM ag_pr_curve('two', 'q') r;
SELECT * FROM ag_pr_curve('two', 'q') LIMIT 1;
SELECT * FROM ag_roc_curve('two', 'q') LIMIT 1;
SELECT max(fpr) AS all_negative, max(tpr) AS none FROM ag_roc_curve('two', 'SELECT * FROM q WHERE NOT b');

SELECT count(*) AS bins, bool_and((n, mean_predicted::numeric(12, 9), fraction_positive::numeric(12, 9)) IS NOT DISTINCT FROM
    (SELECT (count(*), avg(p)::numeric(12, 9), avg(t::int)::numeric(12, 9)) FROM p WHERE width_bucket(p, 0, 1, 5) = bin)) AS as_sql_has_it FROM ag_calibration('two', 'q', 5);
SELECT sum(n), min(low), max(high) FROM ag_calibration('three', 'q', class => 'mid');

SELECT count(*) AS bins, sum(n) AS rows, bool_and(abs(lift - rate / overall) < 1e-12 AND n = 70) AS lifts, abs(sum(positives) - max(all_positive)) < 1e-9 AS all_positives,
    max(cumulative_gain) AS gain, (array_agg(cumulative_lift ORDER BY bin DESC))[1] AS at_last
FROM ag_lift('two', 'q'), (SELECT avg(t::int) AS overall, count(*) FILTER (WHERE t) AS all_positive FROM p) o;
-- a bin's positives, with rows of equal probability evenly mixed
SELECT bool_and(abs(l.positives - s.positives) < 1e-9) AS as_sql_has_it
FROM ag_lift('two', 'q', 7) l, LATERAL (SELECT sum(share) AS positives FROM (SELECT row_number() OVER (ORDER BY p DESC) AS r, avg(t::int) OVER (PARTITION BY p) AS share FROM p) s
    WHERE r BETWEEN (l.bin - 1) * 100 + 1 AND l.bin * 100) s;

SELECT count(*) AS thresholds, bool_and((tp, fp, fn, tn) = (SELECT count(*) FILTER (WHERE t AND p > threshold), count(*) FILTER (WHERE NOT t AND p > threshold),
    count(*) FILTER (WHERE t AND NOT p > threshold), count(*) FILTER (WHERE NOT t AND NOT p > threshold) FROM p)) AS counts,
    bool_and(abs(f1 - 2 * precision * recall / (precision + recall)) < 1e-12) AS f1, bool_and(abs(balanced_accuracy - (recall + specificity) / 2) < 1e-12) AS balanced
FROM ag_threshold_metrics('two', 'q');
SELECT bool_and(abs(t.accuracy - e.value) < 1e-12) AS at_a_half FROM ag_threshold_metrics('two', 'q') t, ag_evaluate('two', 'q') e WHERE t.threshold = 0.5 AND e.metric = 'accuracy';
SELECT bool_and(abs(t.mcc - e.value) < 1e-12) AS at_a_half FROM ag_threshold_metrics('two', 'q') t, ag_evaluate('two', 'q') e WHERE t.threshold = 0.5 AND e.metric = 'mcc';
SELECT threshold, tp, fp, precision, recall FROM ag_threshold_metrics('two', 'q') ORDER BY threshold DESC LIMIT 1;

-- of more than two classes one is named; what can't be
SELECT count(*) > 1 AS some FROM ag_roc_curve('three', 'q', 'mid');
SELECT * FROM ag_roc_curve('three', 'q');
SELECT * FROM ag_roc_curve('three', 'q', 'middle');
SELECT * FROM ag_roc_curve('number', 'q');
SELECT * FROM ag_confusion_matrix('number', 'q');
SELECT * FROM ag_calibration('two', 'q', 0);
SELECT * FROM ag_lift('two', 'q', NULL);
SELECT * FROM ag_lift('two', 'SELECT * FROM q WHERE false');
SELECT count(*) FROM ag_roc_curve(NULL, 'q'), ag_pr_curve('two', NULL), ag_confusion_matrix(NULL, 'q'), ag_threshold_metrics(NULL, 'q'), ag_calibration(NULL, 'q'), ag_lift(NULL, 'q');
SET client_min_messages = warning;
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE q CASCADE;
