-- ag_import: models that other programs made, and our own that went out and came back
SET client_min_messages = notice;
-- XGBoost's, by hand: a < 1.5 or missing goes left; b is a float of XGBoost's, so 0.1 (its nearest float is above it) is not below 0.1f
SELECT ag_import('xgb', '{"learner":{"attributes":{},"feature_names":["a","b"],"feature_types":["float","float"],"gradient_booster":{"model":{"gbtree_model_param":{"num_parallel_tree":"1","num_trees":"2"},"iteration_indptr":[0,1,2],"tree_info":[0,0],"trees":[
 {"base_weights":[0,0,0],"categories":[],"categories_nodes":[],"categories_segments":[],"categories_sizes":[],"default_left":[1,0,0],"id":0,"left_children":[1,-1,-1],"loss_changes":[1,0,0],"parents":[2147483647,0,0],"right_children":[2,-1,-1],"split_conditions":[1.5,10,20],"split_indices":[0,0,0],"split_type":[0,0,0],"sum_hessian":[9,4,5],"tree_param":{"num_deleted":"0","num_feature":"2","num_nodes":"3","size_leaf_vector":"1"}},
 {"base_weights":[0,0,0],"categories":[],"categories_nodes":[],"categories_segments":[],"categories_sizes":[],"default_left":[0,0,0],"id":1,"left_children":[1,-1,-1],"loss_changes":[1,0,0],"parents":[2147483647,0,0],"right_children":[2,-1,-1],"split_conditions":[0.1,100,200],"split_indices":[1,0,0],"split_type":[0,0,0],"sum_hessian":[9,4,5],"tree_param":{"num_deleted":"0","num_feature":"2","num_nodes":"3","size_leaf_vector":"1"}}]},"name":"gbtree"},
 "learner_model_param":{"base_score":"[1E3]","boost_from_average":"1","num_class":"0","num_feature":"2","num_target":"1"},"objective":{"name":"reg:squarederror","reg_loss_param":{"scale_pos_weight":"1"}}},"version":[3,2,0]}', 'xgboost_json', 'y');
SELECT a, b, ag_predict('xgb', r) FROM (VALUES (1.4, 0.0), (1.5, 0.0), (NULL, NULL), (2.0, 0.09), (2.0, 0.1), (2.0, 0.100000001), (2.0, 'NaN')) r (a, b);
SELECT name, problem_type, label, data, rows, best_model, predict_with FROM ag_models;
SELECT model, score_val, device FROM ag_leaderboard('xgb');
SELECT feature, type, kind, became FROM ag_features WHERE model = 'xgb' ORDER BY ordinal;
SELECT count(*) AS explained, abs(sum(contribution) - 1120) < 1e-9 AS sums FROM ag_explain('xgb', '{"a": 2, "b": 0}');

-- LightGBM's, by hand: categories by name, two classes
SELECT ag_import('lgb', E'tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=1\nobjective=binary sigmoid:2\nfeature_names=colour size\nfeature_infos=0:1:2 [0:9]\ntree_sizes=300\n\nTree=0\nnum_leaves=3\nnum_cat=1\nsplit_feature=0 1\nsplit_gain=1 1\nthreshold=0 4.5\ndecision_type=9 10\nleft_child=-1 -2\nright_child=1 -3\nleaf_value=0.5 -0.25 1\nleaf_weight=1 1 1\nleaf_count=1 1 1\ninternal_value=0 0\ninternal_weight=0 0\ninternal_count=3 2\ncat_boundaries=0 1\ncat_threshold=5\nis_linear=0\nshrinkage=1\n\n\nend of trees\n\npandas_categorical:[["red", "green", "blue \\"x\\""]]\n', 'lightgbm_text', 'bought', ARRAY['no', 'yes']);
SELECT colour, size, ag_predict_class('lgb', r) AS class, abs(ag_predict_proba('lgb', r, 'yes'::text) - 1 / (1 + exp(-2 * s))) < 1e-12 AS same
FROM (VALUES ('red', 9, 0.5), ('green', 4, -0.25), ('green', 5, 1), ('blue "x"', NULL, 0.5), ('mauve', NULL, -0.25), (NULL, 9, 1)) r (colour, size, s);

-- there and back
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20, "learning_rate": 0.2}}}'
CREATE TABLE im AS SELECT i AS id, (i % 37)::float8 AS x, CASE WHEN i % 9 > 0 THEN (i * 7) % 31 END::float8 AS z, chr(97 + i % 5) AS c, (i % 37) + (i * 13) % 23 > 30 AS b,
    CASE WHEN (i % 37) + (i * 13) % 11 > 30 THEN 'high' WHEN (i * 7) % 31 > 18 THEN 'mid' ELSE 'low' END AS k, (i % 37) * 0.5 + (i % 5) * 3 AS y FROM generate_series(1, 800) i;
SELECT ag_fit('SELECT x, z, c, y FROM im', 'y', :'quick'::jsonb || '{"name": "number"}');
SELECT ag_fit('SELECT x, z, b FROM im', 'b', :'quick'::jsonb || '{"name": "two"}');
SELECT ag_fit('SELECT x, z, k FROM im', 'k', :'quick'::jsonb || '{"name": "three"}');
SELECT ag_import('number2', ag_export('number/GBM', 'lightgbm_text'), 'lightgbm_text', 'y'), ag_import('two2', ag_export('two/GBM', 'xgboost_json'), 'xgboost_json', 'b', '{false,true}'),
    ag_import('three2', ag_export_bytea('three/GBM', 'lightgbm_text'), 'lightgbm_text', 'k', '{high,low,mid}');
SELECT max(abs(ag_predict('number', t) - ag_predict('number2', t))) < 1e-12 AS number, max(abs(ag_predict_proba('two', t, true) - ag_predict_proba('two2', t, 'true'::text))) < 1e-6 AS two,
    max(abs(ag_predict_proba('three', t, 'mid'::text) - ag_predict_proba('three2', t, 'mid'::text))) < 1e-12 AS three FROM im t;
SELECT a.metric, abs(a.value - b.value) < 1e-9 AS same FROM ag_evaluate('three', 'im') a JOIN ag_evaluate('three2', 'im') b USING (metric) WHERE metric IN ('accuracy', 'log_loss') ORDER BY 1;
SELECT ag_import('three2', ag_export_bytea('three/GBM', 'lightgbm_text'), 'lightgbm_text', 'k');
SELECT name, version, problem_type FROM ag_models WHERE name = 'three2';

-- it has no data, no score, no time, and no device of its own
SELECT ag_refresh('three2');
SELECT item, value FROM ag_fit_summary('three2') WHERE item IN ('device', 'models');

-- what is no such model, or more than can be held
SELECT ag_import('no', 'hello', 'pmml');
SELECT ag_import('no', 'hello', 'xgboost_json');
SELECT ag_import('no', 'hello', 'lightgbm_text');
SELECT ag_import('no', '{"learner": {"objective": {"name": "survival:cox"}}}', 'xgboost_json');
SELECT ag_import('no', replace(ag_export('two/GBM', 'xgboost_json'), '"gbtree"', '"gblinear"'), 'xgboost_json');
SELECT ag_import('no', replace(ag_export('two/GBM', 'xgboost_json'), 'binary:logistic', 'survival:cox'), 'xgboost_json');
SELECT ag_import('no', replace(ag_export('two/GBM', 'xgboost_json'), '"left_children":[1', '"left_children":[0'), 'xgboost_json');
SELECT ag_import('no', left(ag_export('two/GBM', 'xgboost_json'), -3), 'xgboost_json');
SELECT ag_import('no', replace(ag_export('number/GBM', 'lightgbm_text'), 'is_linear=0', 'is_linear=1'), 'lightgbm_text');
SELECT ag_import('no', replace(ag_export('number/GBM', 'lightgbm_text'), 'end of trees', ''), 'lightgbm_text');
SELECT ag_import('no', ag_export('two/GBM', 'xgboost_json'), 'xgboost_json', 'b', '{a,b,c}');
SELECT ag_import('no', ag_export('two/GBM', 'xgboost_json'), 'xgboost_json', 'b', '{a,a}');
SELECT ag_import('no', ag_export('number/GBM', 'lightgbm_text'), 'lightgbm_text', 'b', '{a,b}');
SELECT ag_import('no', ag_export('two/GBM', 'xgboost_json'), 'xgboost_json', 'x');
SELECT ag_import('a/b', ag_export('two/GBM', 'xgboost_json'), 'xgboost_json');
SELECT ag_import('no', NULL::text, 'xgboost_json');
BEGIN READ ONLY; SELECT ag_import('no', 'x', 'xgboost_json'); ROLLBACK;
CREATE ROLE regress_importer;
SET ROLE regress_importer;
SELECT ag_import('two', 'x', 'xgboost_json');
RESET ROLE;
SELECT count(*) AS stored FROM ag_models WHERE name = 'no';
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE im;
DROP ROLE regress_importer;
