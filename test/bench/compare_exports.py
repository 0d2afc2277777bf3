#!/usr/bin/env python3
"""compare_exports.py FORMAT TABLE FAMILY MODEL.hex ROWS.csv: the library's predictions against those in the last column (compare_exports.sh)."""
import json, sys, tempfile
import numpy as np, pandas as pd

form, table, family, model_hex, rows_csv = sys.argv[1:]
model = bytes.fromhex(open(model_hex).read().strip())
rows = pd.read_csv(rows_csv, keep_default_na=False, na_values=[''], low_memory=False)
out = rows.pop('ag_out')
if isinstance(out.iloc[0], str):
    objects = [json.loads(o) for o in out]
    names = sorted(objects[0], key=lambda n: n.encode())  # as the model has its classes; jsonb has them by length
    ours = np.array([[o[n] for n in names] for o in objects])
else:
    ours = out.to_numpy(float)[:, None]; names = None


def numbers(columns):
    return rows[columns].apply(pd.to_numeric, errors='coerce').to_numpy(np.float64)


if form == 'lightgbm_text':
    import lightgbm
    text = model.decode()
    booster = lightgbm.Booster(model_str=text)
    wanted = booster.feature_name()
    columns = {''.join('_' if c in ' \t\n\r"\\,:[]{}=' else c for c in name): name for name in rows.columns}
    levels = json.loads(text.rsplit('pandas_categorical:', 1)[1].strip()) or []
    frame = rows[[columns[w] for w in wanted]].copy()
    kinds = iter(levels)
    for name in frame.columns:
        if frame[name].dtype == object or str(frame[name].dtype) in ('bool', 'str'):
            frame[name] = pd.Categorical(frame[name].astype(str).where(frame[name].notna()), categories=next(kinds))
    data = np.column_stack([np.where(frame[n].cat.codes < 0, np.nan, frame[n].cat.codes) if str(frame[n].dtype) == 'category' else frame[n].to_numpy(float) for n in frame.columns])
    theirs = booster.predict(data)
elif form == 'xgboost_json':
    import xgboost
    booster = xgboost.Booster(model_file=bytearray(model))
    theirs = booster.predict(xgboost.DMatrix(numbers(booster.feature_names).astype(np.float32), feature_names=booster.feature_names))
else:
    import onnx, onnxruntime
    loaded = onnx.load_model_from_string(model)
    onnx.checker.check_model(loaded)
    columns = json.loads(loaded.graph.doc_string)
    session = onnxruntime.InferenceSession(model, providers=['CPUExecutionProvider'])
    theirs = session.run(None, {'features': numbers(columns).astype(np.float32)})[0]
theirs = np.asarray(theirs, float).reshape(len(rows), -1)
if ours.shape[1] == 2 and theirs.shape[1] == 1:
    theirs = np.column_stack([1 - theirs[:, 0], theirs[:, 0]])
print(form, table, family, len(rows), 'rows, greatest difference', np.max(np.abs(theirs - ours) / np.maximum(1, np.abs(ours))), sep='|')
