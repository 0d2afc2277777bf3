#!/usr/bin/env python3
"""Times our GBM against LightGBM and XGBoost on a table of make_table.py, alternately in one run.

    speed_gbm.py [--program P] [--repeats N] [--threads N] [--leaves N] [--depth D] [--family F]
                 [--tsv FILE --name NAME] FILE

CPU seconds of the whole fit (binning and 100 rounds, learning rate 0.1), medians; test log-loss.
With --depth XGBoost grows by depth and the others get that limit and 2^D leaves. Who isn't installed
isn't compared with.
"""
import argparse
import importlib.util
import os
import statistics
import subprocess
import time

import numpy as np


def read(path):
    n, columns = np.fromfile(path, dtype=np.int64, count=2)
    values = np.fromfile(path, offset=16).reshape(columns, n)
    return np.ascontiguousarray(values[:-2].T.astype(np.float32)), values[-2], values[-1]


def log_loss(y, p):
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))


def ours(args, path, y):
    out = "/tmp/speed_gbm.%d" % os.getpid()
    command = [args.program, path, f"family={args.family}", "problem=binary",
               f"threads={args.threads}", f"out={out}"]
    if args.family == "XGB":
        command += ["n_estimators=100", "learning_rate=0.1", f"max_depth={args.depth}"]
    else:
        command += ["num_boost_round=100", "learning_rate=0.1", f"num_leaves={args.leaves}"]
        if args.depth:
            command.append(f"max_depth={args.depth}")
    if args.cats:
        command.append("cats=" + ",".join(map(str, range(args.cats))))
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    line = dict(word.split("=") for word in text.split())
    p = np.fromfile(out).reshape(-1, 2)[:, 1]
    os.unlink(out)
    return float(line["bin_s"]), float(line["train_s"]), log_loss(y, p)


def theirs_lightgbm(args, x, y, x_test, y_test):
    import lightgbm

    start = time.process_time()
    params = {"objective": "binary", "learning_rate": 0.1, "num_leaves": args.leaves,
              "num_threads": args.threads, "verbose": -1, "max_depth": args.depth or -1}
    data = lightgbm.Dataset(x, y, params=params, categorical_feature=list(range(args.cats)))
    data.construct()
    binned = time.process_time()
    model = lightgbm.train(params, data, 100)
    end = time.process_time()
    return binned - start, end - binned, log_loss(y_test, model.predict(x_test))


def theirs_xgboost(args, x, y, x_test, y_test):
    import xgboost

    start = time.process_time()
    data = xgboost.QuantileDMatrix(x, y, nthread=args.threads, max_bin=255)
    binned = time.process_time()
    params = {"objective": "binary:logistic", "eta": 0.1, "tree_method": "hist", "max_bin": 255,
              "nthread": args.threads, "max_leaves": args.leaves, "max_depth": args.depth or 0,
              "grow_policy": "depthwise" if args.depth else "lossguide"}
    model = xgboost.train(params, data, 100)
    end = time.process_time()
    return binned - start, end - binned, log_loss(y_test, model.predict(xgboost.DMatrix(x_test)))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=os.path.join(here, "../../build/bench/train_table"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--cats", type=int, default=0)
    parser.add_argument("--family", choices=["GBM", "XGB"], default="GBM")
    parser.add_argument("--tsv")
    parser.add_argument("--name", default="")
    parser.add_argument("file")
    args = parser.parse_args()
    if args.depth:
        args.leaves = 2**args.depth
    x, part, y = read(args.file)
    train, test = part == 0, part == 2
    data = (x[train], y[train], x[test], y[test])
    engines = {"ag_pg": lambda: ours(args, args.file, y[test]),
               "lightgbm": lambda: theirs_lightgbm(args, *data),
               "xgboost": lambda: theirs_xgboost(args, *data)}
    if args.cats:
        del engines["xgboost"]
    for name in list(engines):
        if name != "ag_pg" and importlib.util.find_spec(name) is None:
            del engines[name]
    results = {name: [] for name in engines}
    for _ in range(args.repeats):
        for name, run in engines.items():
            results[name].append(run())
    print("engine\tbin_s\ttrain_s\ttotal_s\tlog_loss")
    totals = {}
    for name, runs in results.items():
        totals[name] = statistics.median(r[0] + r[1] for r in runs)
        print(f"{name}\t{statistics.median(r[0] for r in runs):.3f}"
              f"\t{statistics.median(r[1] for r in runs):.3f}\t{totals[name]:.3f}"
              f"\t{statistics.median(r[2] for r in runs):.5f}")
    ratio = ""
    if len(totals) > 1:
        best = min(v for k, v in totals.items() if k != "ag_pg")
        ratio = f"{totals['ag_pg'] / best:.3f}"
        print(f"ratio to the faster of the others: {ratio}")
    if args.tsv:
        with open(args.tsv, "a", encoding="ascii") as file:
            for name, runs in results.items():
                print(args.name, name, *(f"{statistics.median(r[i] for r in runs):.5f}"
                                         for i in range(3)),
                      ratio if name == "ag_pg" else "", sep="\t", file=file)


if __name__ == "__main__":
    main()
