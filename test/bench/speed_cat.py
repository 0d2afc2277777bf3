#!/usr/bin/env python3
"""Times our CAT against CatBoost on tables of make_table.py, alternately in one run.

    speed_cat.py [--program P] [--repeats N] [--threads N] [--rounds N] FILE[:CATEGORIES] ...

CPU seconds of the whole fit (CatBoost: Pool and fit, quantisation included; ours: binning and training), medians;
test log-loss. Both with CatBoost's defaults but for as many iterations, and 0.1 as learning rate. The first
CATEGORIES columns of a table are categories.
"""
import argparse
import os
import statistics
import subprocess
import time

from compare_cat import words_of
from speed_gbm import log_loss, read

import numpy as np


def ours(args, path, n_cats, y):
    out = "/tmp/speed_cat.%d" % os.getpid()
    command = [args.program, path, "family=CAT", "problem=binary", "classes=2", f"iterations={args.rounds}",
               "learning_rate=0.1", f"threads={args.threads}", f"out={out}"]
    if n_cats:
        command.append("cats=" + ",".join(map(str, range(n_cats))))
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    line = dict(word.split("=") for word in text.split())
    p = np.fromfile(out).reshape(-1, 2)[:, 1]
    os.unlink(out)
    return float(line["bin_s"]) + float(line["train_s"]), log_loss(y, p)


def theirs(args, n_cats, x, y, x_test, y_test):
    import catboost

    cats = list(range(n_cats))
    if cats:
        x, x_test = words_of(x, cats), words_of(x_test, cats)
    start = time.process_time()
    pool = catboost.Pool(x, y.astype(int), cat_features=cats)
    model = catboost.CatBoost({"iterations": args.rounds, "learning_rate": 0.1, "loss_function": "Logloss",
                               "thread_count": args.threads, "verbose": 0,
                               "allow_writing_files": False})
    model.fit(pool)
    spent = time.process_time() - start
    test = catboost.Pool(x_test, cat_features=cats)
    return spent, log_loss(y_test, model.predict(test, prediction_type="Probability")[:, 1])


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=os.path.join(here, "../../build/bench/train_table"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    print("file\trows\tcategories\tours_s\tcatboost_s\tratio\tours_log_loss\tcatboost_log_loss")
    for file in args.files:
        path, _, n_cats = file.partition(":")
        n_cats = int(n_cats or 0)
        x, part, y = read(path)
        train, test = part == 0, part == 2
        runs = [[], []]
        for _ in range(args.repeats):
            runs[0].append(ours(args, path, n_cats, y[test]))
            runs[1].append(theirs(args, n_cats, x[train], y[train], x[test], y[test]))
        seconds = [statistics.median(r[0] for r in side) for side in runs]
        losses = [statistics.median(r[1] for r in side) for side in runs]
        print(f"{os.path.basename(path)}\t{train.sum()}\t{n_cats}\t{seconds[0]:.3f}\t{seconds[1]:.3f}"
              f"\t{seconds[0] / seconds[1]:.3f}\t{losses[0]:.5f}\t{losses[1]:.5f}", flush=True)


if __name__ == "__main__":
    main()
