-- a bag of forests that is one forest of all rows, scored by the trees that haven't seen a row
SET client_min_messages = warning;
CREATE TABLE wood AS SELECT i % 50 AS x, (i * 7) % 31 AS z, sin(i % 50) * 20 + (i * 7) % 31 AS y,
    CASE WHEN i % 50 > 40 THEN 'rare' ELSE 'common' END AS kind, i / 10 AS stand FROM generate_series(1, 300) i;
SELECT ag_fit('wood', 'y', '{"name": "one", "verbosity": 0, "num_bag_folds": 3, "num_stack_levels": 1, "refit_full": true,
    "ag_args_ensemble": {"use_child_oof": true}, "hyperparameters": {"RF": {"n_estimators": 40}}}');
SELECT model, score_val < 0 AS scored, fit_order FROM ag_leaderboard('one') ORDER BY fit_order, model;
SELECT model, child_oof FROM ag_leaderboard('one') ORDER BY fit_order, model;
SELECT m.name, m.inputs IS NOT NULL AS has_inputs FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor
WHERE p.name = 'one' AND m.name LIKE 'RF_BAG_L1%' ORDER BY m.ordinal;
SELECT count(*) FILTER (WHERE ag_predict('one/RF_BAG_L1', t) = ag_predict('one/RF_BAG_L1_FULL', t)) AS same FROM wood AS t;
SELECT ag_fit('wood', 'y', '{"name": "again", "replay": "one", "verbosity": 0}');
SELECT count(*) FILTER (WHERE ag_predict('one', t) = ag_predict('again', t)) AS same FROM wood AS t;

-- the classes of a label may weigh the same
SELECT ag_fit('wood', 'kind', '{"name": "even", "verbosity": 0, "num_bag_folds": 3, "ag_args_ensemble": {"use_child_oof": true},
    "hyperparameters": {"RF": {"n_estimators": 40, "max_depth": 2, "max_features": "all", "class_weight": "balanced"}}}');
SELECT sum((ag_predict_class('even', t) = kind)::int) > 290 AS learns FROM wood AS t;
SELECT ag_fit('wood', 'y', '{"name": "no", "verbosity": 0, "hyperparameters": {"RF": {"class_weight": "balanced"}}}');
SELECT ag_fit('wood', 'kind', '{"name": "no", "verbosity": 0, "hyperparameters": {"RF": {"class_weight": {"rare": 2}}}}');
SELECT ag_fit('wood', 'kind', '{"name": "no", "verbosity": 0, "hyperparameters": {"RF": {"criterion": "poisson"}}}');

-- neighbours, each row by the others: as SQL counts them
SELECT ag_fit('SELECT x, y FROM wood', 'y', '{"name": "near", "verbosity": 0, "num_bag_folds": 3, "fit_weighted_ensemble": false, "ag_args_ensemble": {"use_child_oof": true},
    "eval_metric": "mean_absolute_error", "hyperparameters": {"KNN": {"n_neighbors": 1, "weights": "uniform"}}}');
SELECT n.model, abs(n.score_val + (SELECT avg(abs(o.label::float8 - o.prediction::float8)) FROM ag_predict_oof('near') o)) < 1e-4 AS scored FROM ag_leaderboard('near') n;
SELECT count(*) AS rows, bool_and(EXISTS (SELECT FROM wood t WHERE t.x = own.x AND t.y <> own.y AND abs(t.y - o.prediction::float8) < 1e-4)) AS by_others
FROM ag_predict_oof('near') o JOIN wood AS own ON abs(own.y - o.label::float8) < 1e-4;

-- that is the rule, but where it is told not to be
SELECT ag_fit('wood', 'y', '{"name": "rule", "verbosity": 0, "num_bag_folds": 3, "hyperparameters": {"RF": [{"n_estimators": 40}, {"n_estimators": 20}], "KNN": {}, "XT": {"n_estimators": 40, "bootstrap": true}, "LR": {}}}');
SELECT ag_fit('wood', 'y', '{"name": "folds", "verbosity": 0, "num_bag_folds": 3, "ag_args_ensemble": {"use_child_oof": false}, "hyperparameters": {"RF": {"n_estimators": 20}, "KNN": {}}}');
SELECT p.name, m.name, jsonb_array_length(m.inputs) AS models, l.child_oof FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor, ag_leaderboard(p.name) l
WHERE p.name IN ('rule', 'folds') AND l.model = m.name AND m.name LIKE '%_BAG_L1' ORDER BY 1 DESC, 2;

-- groups stay together: folds
SELECT ag_fit('wood', 'y', '{"name": "stands", "verbosity": 0, "num_bag_folds": 3, "groups": "stand",
    "ag_args_ensemble": {"use_child_oof": true}, "hyperparameters": {"RF": {"n_estimators": 10}}}');
SELECT count(*) FROM ag_member m JOIN ag_predictor p ON p.id = m.predictor WHERE p.name = 'stands' AND m.name LIKE 'RF_BAG_L1/%';

-- CAT boosts in order where asked to: not what it says otherwise
SELECT ag_fit('wood', 'y', '{"name": "plain", "verbosity": 0, "hyperparameters": {"CAT": {"boosting_type": "Plain", "iterations": 400}}}');
SELECT ag_fit('wood', 'y', '{"name": "ordered", "verbosity": 0, "hyperparameters": {"CAT": {"boosting_type": "Ordered", "iterations": 400}}}');
SELECT count(*) FILTER (WHERE ag_predict('plain', w) <> ag_predict('ordered', w)) > count(*) / 2 AS differ,
    corr(ag_predict('ordered', w)::float8, y) > 0.9 AS learns FROM wood w;
SELECT ag_fit('wood', 'y', '{"name": "no", "verbosity": 0, "hyperparameters": {"CAT": {"boosting_type": "Ordered", "grow_policy": "Depthwise"}}}');
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE wood;
