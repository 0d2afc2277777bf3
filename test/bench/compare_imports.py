#!/usr/bin/env python3
"""compare_imports.py DATASETS: XGBoost and LightGBM train models of many kinds on real tables; imported, they must predict in SQL what the library predicts.

Run it by test/with_cluster with a Python that has xgboost, lightgbm and pandas. Prints the greatest difference of each model, relative where predictions are above 1."""
import io, json, os, subprocess, sys, tempfile
import numpy as np, pandas as pd, xgboost, lightgbm

datasets = sys.argv[1]


def psql(sql, **more):
    done = subprocess.run(['psql', '-XAtq', '-v', 'ON_ERROR_STOP=1'], input=sql, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def check(name, rows, model, form, theirs, classes=None):
    """rows: a DataFrame of the features; theirs: [n] or [n, classes]."""
    with tempfile.NamedTemporaryFile('w', suffix='.csv') as f, tempfile.NamedTemporaryFile('w') as m:
        rows.to_csv(f.name, index=True, index_label='ag_row')
        columns = ', '.join('"%s" %s' % (c, 'text' if rows[c].dtype.name in ('category', 'object', 'str') else 'float8') for c in rows.columns)
        m.write(model if isinstance(model, str) else model.decode())
        m.flush()
        call = "ag_predict('m', t)" if theirs.ndim == 1 and classes is None else "ag_predict_proba('m', t)"
        out = psql(f"""SET client_min_messages = warning; DROP TABLE IF EXISTS t; CREATE TABLE t (ag_row int, {columns});
\\copy t FROM '{f.name}' CSV HEADER
\\set model `cat {m.name}`
SELECT ag_import('m', :'model', '{form}'); COPY (SELECT ag_row, {call} FROM t ORDER BY ag_row) TO STDOUT; SELECT ag_drop('m');""")
    lines = [l.split('\t') for l in out.splitlines() if '\t' in l]
    if classes is None:
        ours = np.array([float(l[1]) for l in lines])
    else:
        ours = np.array([[json.loads(l[1])[str(c)] for c in range(classes)] for l in lines])
    theirs = np.asarray(theirs, float)
    if classes == 2 and theirs.ndim == 1:
        theirs = np.column_stack([1 - theirs, theirs])
    print(f'{form}|{name}|{len(lines)} rows|{np.max(np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))):.2g}', flush=True)


def table(name, label):
    d = pd.read_csv(f'{datasets}/{name}.csv.gz')
    return d.drop(columns=[label]), d[label]


psql('CREATE EXTENSION ag_pg')
x, y = table('concrete', 'strength')
holes = x.mask(np.random.default_rng(1).random(x.shape) < 0.1)
b, yb = table('spambase', 'type')
yb = (yb == sorted(yb.unique())[1]).astype(int)
v, yv = table('vehicle', 'Class')
yv = yv.astype('category').cat.codes
for objective in ('reg:squarederror', 'reg:absoluteerror', 'reg:pseudohubererror', 'count:poisson', 'reg:gamma', 'reg:tweedie'):
    m = xgboost.train({'objective': objective, 'max_depth': 6}, xgboost.DMatrix(holes, y), 50)
    check(objective, holes, bytes(m.save_raw('json')), 'xgboost_json', m.predict(xgboost.DMatrix(holes)))
m = xgboost.train({'objective': 'reg:squarederror', 'booster': 'dart', 'rate_drop': 0.3}, xgboost.DMatrix(x, y), 30)
check('dart', x, bytes(m.save_raw('json')), 'xgboost_json', m.predict(xgboost.DMatrix(x)))
m = xgboost.train({'objective': 'binary:logistic', 'grow_policy': 'lossguide', 'max_leaves': 40}, xgboost.DMatrix(b, yb), 50)
check('binary:logistic', b, bytes(m.save_raw('json')), 'xgboost_json', m.predict(xgboost.DMatrix(b)), 2)
m = xgboost.train({'objective': 'multi:softprob', 'num_class': 4, 'num_parallel_tree': 2, 'subsample': 0.7}, xgboost.DMatrix(v, yv), 20)
check('multi:softprob', v, bytes(m.save_raw('json')), 'xgboost_json', m.predict(xgboost.DMatrix(v)), 4)
a, ya = table('adult', 'class')
ya = (ya == sorted(ya.unique())[1]).astype(int)
codes = a.apply(lambda c: c.astype('category').cat.codes.where(c.notna()).astype(float) if c.dtype.kind not in 'if' else c.astype(float))
kinds = ['c' if a[c].dtype.kind not in 'if' else 'float' for c in a.columns]
d = xgboost.DMatrix(codes, ya, feature_types=kinds, enable_categorical=True)
m = xgboost.train({'objective': 'binary:logistic', 'max_cat_to_onehot': 3}, d, 40)
check('categories by code', codes, bytes(m.save_raw('json')), 'xgboost_json', m.predict(d), 2)
for objective in ('regression', 'regression_l1', 'huber', 'poisson', 'gamma', 'tweedie', 'quantile'):
    m = lightgbm.train({'objective': objective, 'verbosity': -1}, lightgbm.Dataset(holes, y), 50)
    check(objective, holes, m.model_to_string(), 'lightgbm_text', m.predict(holes))
m = lightgbm.train({'objective': 'regression', 'boosting': 'rf', 'bagging_freq': 1, 'bagging_fraction': 0.7, 'verbosity': -1}, lightgbm.Dataset(x, y), 20)
check('rf', x, m.model_to_string(), 'lightgbm_text', m.predict(x))
m = lightgbm.train({'objective': 'regression', 'use_missing': False, 'verbosity': -1}, lightgbm.Dataset(holes, y), 20)
check('use_missing=false', holes, m.model_to_string(), 'lightgbm_text', m.predict(holes))
m = lightgbm.train({'objective': 'binary', 'sigmoid': 1.7, 'verbosity': -1}, lightgbm.Dataset(b, yb), 50)
check('binary', b, m.model_to_string(), 'lightgbm_text', m.predict(b), 2)
m = lightgbm.train({'objective': 'multiclass', 'num_class': 4, 'verbosity': -1}, lightgbm.Dataset(v, yv), 20)
check('multiclass', v, m.model_to_string(), 'lightgbm_text', m.predict(v), 4)
named = a.copy()
for c in named.columns:
    if named[c].dtype.kind not in 'if':
        named[c] = named[c].astype('category')
m = lightgbm.train({'objective': 'binary', 'verbosity': -1}, lightgbm.Dataset(named, ya), 50)
renamed = named.rename(columns=dict(zip(named.columns, m.feature_name())))
check('categories of pandas', renamed, m.model_to_string(), 'lightgbm_text', m.predict(named), 2)
