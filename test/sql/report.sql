-- ag_report: one page that needs nothing else, its numbers those of the functions, texts as texts
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 25, "learning_rate": 0.1}}}'
CREATE TABLE rp AS SELECT i % 37 AS x, (i * 7) % 31 AS "z <b> & é", (i % 37) + (i * 13) % 23 > 30 AS b,
    CASE WHEN (i % 37) + (i * 13) % 11 > 30 THEN '</td><script>alert("x")</script>' WHEN (i * 7) % 31 + (i * 5) % 7 > 18 THEN 'mid' ELSE 'low' END AS c,
    i * 0.5 + i % 7 AS y, 'k' || i % 25 AS k FROM generate_series(1, 700) i;
SELECT ag_fit('SELECT x, "z <b> & é", b FROM rp', 'b', :'quick'::jsonb || '{"name": "two"}');
SELECT ag_fit('rp', 'c', :'quick'::jsonb || '{"name": "three <&>"}');
SELECT ag_fit('SELECT x, c, y FROM rp', 'y', :'quick'::jsonb || '{"name": "number"}');
SELECT ag_fit('SELECT x, c, k FROM rp', 'k', :'quick'::jsonb || '{"name": "many"}');
CREATE TABLE page AS SELECT name, ag_report(name, data) AS html
FROM (VALUES ('two', NULL), ('two', 'SELECT * FROM rp WHERE x < 30'), ('three <&>', 'rp'), ('number', 'rp'), ('many', 'rp')) AS v (name, data);

SELECT bool_and(html LIKE '<!DOCTYPE html>%</html>' || E'\n') AS whole, bool_and(html !~ '[^\n\x20-\x7e]') AS ascii,
    bool_or(html ~* '<script|<link|<img|<iframe|@import|url\(|https?://|onload|<foreignObject') AS reaches_out FROM page;
-- every tag is closed: elements as XML (but for the head's, which HTML leaves open)
SELECT name, count(*) AS plots, bool_and(xml_is_well_formed_document(svg[1])) AS well_formed
FROM page, regexp_matches(html, '<svg.*?</svg>', 'g') AS svg GROUP BY name ORDER BY name;
SELECT name, bool_and(xml_is_well_formed_document(replace(regexp_replace(html, '^.*</head>', ''), '</html>', ''))) AS body_well_formed FROM page GROUP BY name ORDER BY name;
SELECT count(*) AS escaped FROM page WHERE name LIKE 'three%' AND html LIKE '%<h1>three &lt;&amp;&gt;</h1>%' AND html LIKE '%>&lt;/td&gt;&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;<%'
    AND html LIKE '%z &lt;b&gt; &amp; &#233;%';

-- what is in it
SELECT name, html LIKE '%<h2>On the data</h2>%' AS data, array(SELECT m[1] FROM regexp_matches(html, '<figcaption>([^<]*)', 'g') AS m) AS plots FROM page ORDER BY name, 2;
SELECT bool_and(html LIKE format('%%<td>%s</td><td class="n">%s</td>%%', metric, CASE WHEN value = round(value) THEN value::text ELSE rtrim(left(value::numeric::text, 4), '.') || '%' END)) AS metrics
FROM page, ag_evaluate('number', 'rp') WHERE name = 'number' AND abs(value) BETWEEN 1e-3 AND 1e4;
SELECT sum(n) AS as_counted, bool_and(html LIKE '%">' || n || '</td>%') AS shown FROM page, ag_confusion_matrix('three <&>', 'rp') WHERE name LIKE 'three%';
SELECT count(*) AS classes_in_words FROM page WHERE name = 'many' AND html ~ '<th scope="col">Actual</th><th scope="col">Predicted</th><th class="n" scope="col">Rows</th>';
SELECT count(*) FILTER (WHERE html LIKE '%fitted on this very data%') AS own_data FROM page WHERE name IN ('three <&>', 'two');
SELECT array_agg(m[1] ORDER BY o) = array(SELECT feature FROM ag_feature_importance('number', 'rp', 2000, 3)) AS importance
FROM page, regexp_matches(regexp_replace(html, '^.*<h2>Importance of columns</h2>|<h2>Columns</h2>.*$', '', 'g'), '<tr><td>([^<]*)</td>', 'g') WITH ORDINALITY AS r (m, o) WHERE name = 'number';
-- learning curves, models that failed, quantiles
SELECT html ~ '<h2>Learning curves</h2>' AS section, html ~ '<figcaption>GBM</figcaption>' AS gbm, array_length(string_to_array(regexp_replace(html, '^.*<h2>Learning curves</h2>|<h2>Columns</h2>.*$', '', 'g'), '<polyline'), 1) - 1 AS lines FROM page WHERE name = 'number';
SELECT ag_fit('SELECT x, c, y FROM rp', 'y', '{"name": "levels", "verbosity": 0, "num_bag_folds": 3, "problem_type": "quantile", "quantile_levels": [0.25, 0.5], "hyperparameters": {"GBM": [{"num_boost_round": 25}, {"ag_args_fit": {"max_time_limit": 0.000001}}]}}');
SELECT html ~ '<h2>Quantiles</h2>' AS quantiles, html LIKE format('%%<td class="n">0.25</td><td class="n">%s</td>%%', trunc(avg((y <= (ag_predict_quantiles('levels', t))[1])::int), 3)::float8 || '%') AS share,
    html ~ '<h2>Models that were not fitted</h2>.*<td>GBM_2' AS failed, array_length(string_to_array(regexp_replace(html, '^.*<h2>Learning curves</h2>|<h2>Models that.*$', '', 'g'), '<polyline'), 1) - 1 AS lines
FROM (SELECT ag_report('levels', 'rp') AS html) s, rp t GROUP BY html;
SELECT ag_report(NULL) IS NULL AS nothing;
SELECT ag_report('nobody');
SELECT ag_report('two', 'nowhere');

-- who may only predict sees no more of what it was made of than the other functions show
CREATE ROLE regress_report_reader;
SELECT ag_grant('three <&>', 'regress_report_reader');
GRANT SELECT ON rp TO regress_report_reader;
SET ROLE regress_report_reader;
SELECT ag_report('three <&>', 'rp') ~ '<h2>(Columns|Fitted with)</h2>' AS told, ag_report('three <&>', 'rp') ~ '<h2>Importance of columns</h2>' AS reported;
SELECT ag_report('two');
RESET ROLE;
SELECT ag_drop('two'), ag_drop('three <&>'), ag_drop('number'), ag_drop('many'), ag_drop('levels');
DROP TABLE rp, page;
DROP ROLE regress_report_reader;
