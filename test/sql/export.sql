-- ag_export: what a format says is what the model predicts, computed from the text alone
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20, "learning_rate": 0.2}}}'
CREATE TABLE ex AS SELECT i AS id, (i % 37)::real AS "x ""1""", CASE WHEN i % 9 > 0 THEN (i * 7) % 31 END::float8 AS z, CASE WHEN i % 11 > 0 THEN chr(97 + i % 5) || '''s' END AS c, i % 2 = 0 AS f,
    (i % 37) + (i * 13) % 23 > 30 AS b, CASE WHEN (i % 37) + (i * 13) % 11 > 30 THEN 'high' WHEN (i * 7) % 31 > 18 THEN 'mid' ELSE 'low' END AS k, (i % 37) * 0.5 + (i % 5) * 3 + (i % 2) * 5 AS y FROM generate_series(1, 800) i;
SELECT ag_fit('SELECT "x ""1""", z, c, f, y FROM ex', 'y', :'quick'::jsonb || '{"name": "number"}');
SELECT ag_fit('SELECT "x ""1""", z, c, f, b FROM ex', 'b', :'quick'::jsonb || '{"name": "two"}');
SELECT ag_fit('SELECT "x ""1""", z, k FROM ex', 'k', :'quick'::jsonb || '{"name": "three"}');
SELECT ag_fit('SELECT "x ""1""", z, y FROM ex', 'y', :'quick'::jsonb || '{"name": "plain"}');
SELECT ag_fit('SELECT "x ""1""", z, b FROM ex', 'b', '{"verbosity": 0, "name": "forest", "hyperparameters": {"RF": {"n_estimators": 8, "max_leaf_nodes": 20}}}');

-- an expression
CREATE VIEW strange AS SELECT * FROM ex UNION ALL VALUES (0, 'NaN'::real, 'NaN'::float8, 'never seen', NULL::boolean, NULL::boolean, NULL, NULL::numeric), (-1, '-Infinity', 'Infinity', NULL, true, NULL, NULL, NULL);
\set ECHO errors
SELECT format('SELECT %L AS model, count(*) AS rows, bool_and(abs(e - p) <= 1e-12) AS same FROM (SELECT (%s) AS e, %s AS p FROM strange t) s', m, ag_export(m || '/' || f, 'sql'), call)
FROM (VALUES ('number', 'GBM', 'ag_predict(''number'', t)'), ('two', 'GBM', 'ag_predict_proba(''two'', t, true)'), ('forest', 'RF', 'ag_predict_proba(''forest'', t, true)')) AS v (m, f, call)
\gexec
\set ECHO all

-- JSON of ours, walked by hand: features by name, categories by level
CREATE FUNCTION walk(model jsonb, tree jsonb, r jsonb) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE at int := CASE WHEN jsonb_array_length(tree -> 'nodes') > 0 THEN 0 ELSE -1 END; n jsonb; feature jsonb; v text; l boolean;
BEGIN
    WHILE at >= 0 LOOP
        n := tree -> 'nodes' -> at;
        feature := model -> 'features' -> (n ->> 'feature')::int;
        v := r ->> (feature ->> 'column');
        IF v IS NULL OR v = 'NaN' THEN l := n ->> 'missing' = 'left';
        ELSIF n ? 'levels' THEN l := CASE WHEN feature -> 'levels' ? v THEN EXISTS (SELECT FROM jsonb_array_elements_text(n -> 'levels') c WHERE feature -> 'levels' ->> c::int = v) ELSE n ->> 'unseen' = 'left' END;
        ELSE l := CASE v WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE v::float8 END <= (n ->> 'threshold')::float8; END IF;
        at := CASE WHEN l THEN n ->> 'left' ELSE n ->> 'right' END;
    END LOOP;
    RETURN tree -> 'leaves' ->> (-1 - at);
END $$;
CREATE FUNCTION scores(model jsonb, r jsonb) RETURNS float8[] LANGUAGE sql AS $$
    SELECT array_agg(b::float8 + s ORDER BY o) FROM jsonb_array_elements_text(model -> 'base') WITH ORDINALITY AS e (b, o),
        LATERAL (SELECT coalesce(sum(walk(model, t, r)), 0) AS s FROM jsonb_array_elements(model -> 'trees') t WHERE (t ->> 'output')::int = o - 1) x $$;
CREATE TABLE exported AS SELECT m, ag_export(m || '/GBM', 'json')::jsonb AS j FROM unnest(array['number', 'two', 'three']) m;
SELECT m, j ->> 'link' AS link, jsonb_array_length(j -> 'trees') > 0 AS trees, j -> 'classes' AS classes FROM exported ORDER BY m;
SELECT bool_and(abs((scores(j, to_jsonb(t)))[1] - ag_predict('number', t)) < 1e-9) AS number FROM strange t, exported WHERE m = 'number' AND id % 40 <= 0;
SELECT bool_and(abs(1 / (1 + exp(-(scores(j, to_jsonb(t)))[1])) - ag_predict_proba('two', t, true)) < 1e-9) AS two FROM strange t, exported WHERE m = 'two' AND id % 40 <= 0;
SELECT bool_and(abs(exp(s[n]) / (exp(s[1]) + exp(s[2]) + exp(s[3])) - (ag_predict_proba('three', t) ->> (j -> 'classes' ->> (n - 1)))::float8) < 1e-9) AS three
FROM strange t, exported, generate_series(1, 3) n, LATERAL (SELECT scores(j, to_jsonb(t)) AS s) x WHERE m = 'three' AND id % 80 <= 0;

-- XGBoost's JSON, walked likewise: x < condition, by floats
CREATE FUNCTION walk_xgboost(tree jsonb, x float4[]) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE at int := 0; v float4;
BEGIN
    WHILE (tree -> 'left_children' ->> at)::int >= 0 LOOP
        v := x[(tree -> 'split_indices' ->> at)::int + 1];
        at := CASE WHEN CASE WHEN v IS NULL OR v = 'NaN' THEN (tree -> 'default_left' ->> at) = '1' ELSE v < (tree -> 'split_conditions' ->> at)::float4 END
            THEN tree -> 'left_children' ->> at ELSE tree -> 'right_children' ->> at END;
    END LOOP;
    RETURN tree -> 'split_conditions' ->> at;
END $$;
SELECT j -> 'learner' -> 'feature_names' AS names, bool_and((SELECT bool_and((t -> 'right_children' ->> i)::int IN (-1, (t -> 'left_children' ->> i)::int + 1)) FROM generate_series(0, jsonb_array_length(t -> 'parents') - 1) i)) AS children_side_by_side
FROM (SELECT ag_export('plain/GBM', 'xgboost_json')::jsonb AS j) s, jsonb_array_elements(j -> 'learner' -> 'gradient_booster' -> 'model' -> 'trees') t GROUP BY 1;
SELECT count(*) AS rows, bool_and(abs(p - s) / greatest(1, abs(p)) < 1e-6) AS same FROM (SELECT ag_predict('plain', t) AS p, (SELECT sum(walk_xgboost(w, array["x ""1""", z]::float4[]))
    FROM jsonb_array_elements(j -> 'learner' -> 'gradient_booster' -> 'model' -> 'trees') w) AS s FROM strange t, (SELECT ag_export('plain/GBM', 'xgboost_json')::jsonb AS j) e WHERE id % 40 <= 0) s;

-- LightGBM's text: its last line has the levels
SELECT ag_fit('SELECT "x ""1""", c, y FROM ex WHERE c IS NOT NULL', 'y', :'quick'::jsonb || '{"name": "whole"}');
SELECT split_part(ag_export('whole/GBM', 'lightgbm_text'), 'pandas_categorical:', 2)::jsonb AS levels;
SELECT array_length(string_to_array(ag_export('three/GBM', 'lightgbm_text'), 'Tree='), 1) % 3 = 1 AS trees, ag_export('three/GBM', 'lightgbm_text') ~ 'objective=multiclass num_class:3\n' AS objective;
SELECT length(ag_export_bytea('plain/GBM', 'onnx')) > 1000 AS onnx, convert_from(ag_export_bytea('plain/GBM', 'sql'), 'UTF8') = ag_export('plain/GBM', 'sql') AS bytes;

-- what can't be
SELECT ag_fit('SELECT "x ""1""", z, y FROM ex', 'y', '{"verbosity": 0, "name": "line", "hyperparameters": {"LR": {}}}');
SELECT ag_fit('SELECT "x ""1""", z, c, y FROM ex', 'y', :'quick'::jsonb || '{"name": "bag", "num_bag_folds": 2}');
SELECT ag_fit('SELECT date ''2024-01-01'' + id AS d, y FROM ex', 'y', :'quick'::jsonb || '{"name": "dated"}');
SELECT ag_export('number/GBM', 'pmml');
SELECT ag_export('number/GBM', 'onnx');
SELECT ag_export('number/GBM', 'xgboost_json');
SELECT ag_export('number/GBM', 'lightgbm_text');
SELECT ag_export('three/GBM', 'sql');
SELECT ag_export('line/LR', 'json');
SELECT ag_export('bag/GBM_BAG_L1', 'json');
SELECT ag_export('bag/NOPE', 'json');
SELECT ag_export('dated/GBM', 'lightgbm_text');
SELECT ag_export('forest/RF', 'lightgbm_text');
SELECT ag_export('nobody', 'json');
CREATE ROLE regress_export_reader;
SELECT ag_grant('number', 'regress_export_reader');
SET ROLE regress_export_reader;
SELECT ag_export('number/GBM', 'json');
RESET ROLE;
SELECT ag_grant('number', 'regress_export_reader', 'inspect');
SET ROLE regress_export_reader;
SELECT ag_export('number/GBM', 'json') LIKE '{%' AS may;
RESET ROLE;
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP VIEW strange;
DROP TABLE ex, exported;
DROP FUNCTION walk, scores, walk_xgboost;
DROP ROLE regress_export_reader;
