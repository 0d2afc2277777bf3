# xgboost_gpu.py [SCALE] - XGBoost on the GPU, on tables of the sizes of bench.c: lines for its table. The time is that of training, once the
# bins are on the GPU; the first of two runs isn't counted.
import sys
import time

import numpy
import xgboost

scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
for rows, depth in ((11000000, 8), (1000000, 6), (100000, 6)):
    rows_here = int(rows * scale) + 100
    random = numpy.random.default_rng(3)
    x = random.random((rows_here, 28), dtype=numpy.float32)
    y = (numpy.sin(6 * x[:, 0]) + 2 * x[:, 1] + 0.3 * random.random(rows_here) > 1.5).astype(numpy.float32)
    table = xgboost.QuantileDMatrix(x, y, max_bin=255)
    params = {"device": "cuda", "tree_method": "hist", "objective": "binary:logistic", "max_depth": depth, "max_bin": 255, "eta": 0.1}
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        xgboost.train(params, table, num_boost_round=100)
        seconds.append(time.perf_counter() - began)
    print("XGBoost %s %d x 28, depth %d, 100 trees" % (xgboost.__version__, rows, depth), rows_here, "%.3f" % seconds[0], "%.3f" % seconds[1],
          "%.3f" % (seconds[1] * 10), "-", "-", sep="\t", flush=True)
