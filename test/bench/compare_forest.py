#!/usr/bin/env python3
"""Compares our RF and XT with scikit-learn's: same folds, same number of trees, one thread.

    compare_forest.py [--program P] [--family RF|XT] [--trees N] [--rows N] [--seeds N] [--folds N] TABLE ...

TABLE is a csv.gz of DIR (--dir), with its line in INDEX.tsv there. Needs pandas and scikit-learn. What is printed is
told in paired.py: errors are RMSE or log-loss with shares below 0.001 counted as 0.001, and the share of wrong classes in
a second table; seconds are CPU time of a fit. Categories are codes by frequency for
scikit-learn, which has no others, and missing numbers the median.
"""
import argparse
import os
import subprocess
import tempfile
import time

import numpy as np
from sklearn import ensemble

from compare_gbm import load, table_index
from paired import Comparison, parts_of


def errors_of(problem, y, predicted):
    if problem == "regression":
        error = float(np.sqrt(np.mean((y - predicted) ** 2)))
        return error, error
    p = predicted[np.arange(len(y)), y.astype(int)]
    # Forests say 0 of what they haven't seen: bounded, else a few rows are the whole loss.
    return (float(-np.mean(np.log(np.clip(p, 1e-3, 1)))),
            float(np.mean(predicted.argmax(axis=1) != y)))


def run_ours(args, x, y, cats, test, problem, n_classes, seed):
    part = np.zeros(len(y))
    part[test] = 2
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "t.bin"), os.path.join(folder, "p.bin")
        with open(path, "wb") as file:
            np.array([x.shape[0], x.shape[1] + 2], dtype=np.int64).tofile(file)
            np.asfortranarray(np.column_stack([x, part, y])).ravel(order="F").tofile(file)
        command = [args.program, path, f"family={args.family}", f"problem={problem}",
                   f"classes={n_classes}", f"seed={seed}", f"out={out}", "oob=0",
                   f"n_estimators={args.trees}"]
        if cats:
            command.append("cats=" + ",".join(map(str, cats)))
        command += args.set
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        line = dict(word.split("=") for word in text.split())
        predicted = np.fromfile(out)
    if problem != "regression":
        predicted = predicted.reshape(-1, n_classes)
    return predicted, float(line["bin_s"]) + float(line["train_s"])


def run_theirs(args, x, y, test, problem, n_classes, seed):
    train = np.setdiff1d(np.arange(len(y)), test)
    name = {"RF": "RandomForest", "XT": "ExtraTrees"}[args.family]
    kind = "Regressor" if problem == "regression" else "Classifier"
    model = getattr(ensemble, name + kind)(n_estimators=args.trees, max_leaf_nodes=15000,
                                           random_state=seed, n_jobs=1)
    start = time.process_time()
    model.fit(x[train], y[train])
    spent = time.process_time() - start
    if problem == "regression":
        return model.predict(x[test]), spent
    full = np.zeros((len(test), n_classes))
    full[:, model.classes_.astype(int)] = model.predict_proba(x[test])
    return full, spent


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=os.path.join(here, "../../build/bench/train_table"))
    parser.add_argument("--dir", default=os.path.join(here, "../../../shared/datasets"))
    parser.add_argument("--family", default="RF", choices=["RF", "XT"])
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--rows", type=int, default=10000)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ordinal", action="store_true", help="categories are numbers for us too")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("tables", nargs="+")
    args = parser.parse_args()
    index = table_index(args.dir)
    comparisons = [Comparison("scikit-learn"), Comparison("scikit-learn")]
    print(comparisons[0].header(), flush=True)
    for name in args.tables:
        x, y, cats, problem = load(args.dir, name, index, args.rows)
        n_classes = 0 if problem == "regression" else int(y.max()) + 1
        filled = np.where(np.isnan(x), np.nanmedian(x, axis=0), x)
        ours, theirs, again, seconds = [], [], [], [0.0, 0.0]
        for seed in range(args.seeds):
            for part in parts_of(y, problem, seed, args.folds, 0.0):
                test = np.flatnonzero(part == 2)
                p, s = run_ours(args, x, y, [] if args.ordinal else cats, test, problem, n_classes,
                                seed)
                ours.append(errors_of(problem, y[test], p))
                seconds[0] += s
                p, s = run_theirs(args, filled, y, test, problem, n_classes, seed)
                theirs.append(errors_of(problem, y[test], p))
                seconds[1] += s
                p, _ = run_theirs(args, filled, y, test, problem, n_classes, seed + 1000)
                again.append(errors_of(problem, y[test], p))
        for kind, comparison in enumerate(comparisons[:1 if problem == "regression" else 2]):
            row = comparison.add(name, *([e[kind] for e in errors] for errors in (ours, theirs, again)),
                                 seconds[0] / len(ours), seconds[1] / len(ours))
            if kind == 0:
                print(comparison.line(row), flush=True)
    print()
    print(comparisons[0].report())
    if comparisons[1].tables:
        print("\nShare of wrong classes:\n")
        print(comparisons[1].report())


if __name__ == "__main__":
    main()
