#!/usr/bin/env python3
"""predict_peers.py ROWS.csv - CPU time of XGBoost's and LightGBM's predict, from memory, on one thread: 100 trees of depth 6 fitted on the
first 20,000 rows; the label is the last column. The median of five runs. Called by predict.sh."""
import statistics
import sys
import time

import lightgbm
import numpy
import xgboost

table = numpy.loadtxt(sys.argv[1], delimiter=",")
x, y = numpy.ascontiguousarray(table[:, :-1]), table[:, -1]


def report(name, predict):
    runs = []
    for _ in range(5):
        began = time.process_time()
        predict()
        runs.append(time.process_time() - began)
    print(f"{name:58s} {statistics.median(runs) * 1e6 / len(x):8.3f} us a row")


xgb = xgboost.train({"max_depth": 6, "eta": 0.05, "nthread": 1, "tree_method": "hist"},
                    xgboost.DMatrix(x[:20000], y[:20000], nthread=1), 100)
x32 = x.astype(numpy.float32)
report("XGBoost, inplace_predict of float64 in memory", lambda: xgb.inplace_predict(x))
report("XGBoost, inplace_predict of float32 in memory", lambda: xgb.inplace_predict(x32))
report("XGBoost, DMatrix made and predicted", lambda: xgb.predict(xgboost.DMatrix(x, nthread=1)))
lgb = lightgbm.train({"max_depth": 6, "num_leaves": 64, "learning_rate": 0.05, "num_threads": 1, "verbosity": -1},
                     lightgbm.Dataset(x[:20000], y[:20000]), 100)
report("LightGBM, predict of float64 in memory", lambda: lgb.predict(x, num_threads=1))
