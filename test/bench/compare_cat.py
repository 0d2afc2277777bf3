#!/usr/bin/env python3
"""Compares our CAT with CatBoost: same rows, same parameters, same stopping rows.

    compare_cat.py [--program P] [--seeds N] [--stop N] [--rows N] [--cache FILE]
                   [--set name=value ...] [--ours name=value ...] TABLE ...

As compare_gbm.py, with catboost in LightGBM's place. --ours sets what only ours gets, --cache keeps
CatBoost's answers between runs, by table, rows, seed and parameters.
"""
import argparse
import json
import os
import time

import numpy as np

from compare_gbm import error_of, load, run_ours, split_parts, table_index


def words_of(x, cats):
    """CatBoost wants categories as words or whole numbers; a missing one is a level of its own."""
    rows = x.astype(object)
    for c in cats:
        rows[:, c] = [("nan" if v != v else str(int(v))) for v in x[:, c]]
    return rows


def run_catboost(x, y, cats, part, problem, n_classes, settings, seed, stop, threads=1):
    import catboost

    params = {"iterations": 10000, "learning_rate": 0.05, "verbose": 0, "thread_count": threads,
              "random_seed": seed, "allow_writing_files": False}
    for name, value in settings.items():
        try:
            params[name] = int(value)
        except ValueError:
            try:
                params[name] = float(value)
            except ValueError:
                params[name] = value
    params["loss_function"] = {"regression": "RMSE", "binary": "Logloss",
                               "multiclass": "MultiClass"}[problem]
    rows = words_of(x, cats) if cats else x
    labels = y if problem == "regression" else y.astype(int)
    start = time.process_time()
    train = catboost.Pool(rows[part == 0], labels[part == 0], cat_features=cats)
    valid = catboost.Pool(rows[part == 1], labels[part == 1], cat_features=cats)
    test = catboost.Pool(rows[part == 2], cat_features=cats)
    pools = time.process_time()
    model = catboost.CatBoost(params)
    model.fit(train, eval_set=valid if len(labels[part == 1]) else None,
              early_stopping_rounds=stop if stop > 0 else None)
    spent = time.process_time() - pools
    if problem == "regression":
        predicted = model.predict(test)
    else:
        predicted = model.predict(test, prediction_type="Probability")
    del start
    return predicted, spent, model.tree_count_


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=os.path.join(here, "../../build/bench/train_table"))
    parser.add_argument("--dir", default=os.path.join(here, "../../../shared/datasets"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--stop", type=int, default=100)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--cache")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--ours", action="append", default=[])
    parser.add_argument("tables", nargs="+")
    args = parser.parse_args()
    settings = dict(item.split("=") for item in args.set)
    own = dict(settings, family="CAT")
    own.update(item.split("=") for item in args.ours)
    own = {"family": own.pop("family"), **own}
    cache = {}
    if args.cache and os.path.exists(args.cache):
        cache = json.load(open(args.cache))
    index = table_index(args.dir)
    print("table\tproblem\trows\tours\tcatboost\tdiff_percent\tcatboost_seeds_percent\tours_s"
          "\tcatboost_s\trounds\tcatboost_rounds", flush=True)
    differences = []
    for name in args.tables:
        x, y, cats, problem = load(args.dir, name, index, args.rows)
        n_classes = 0 if problem == "regression" else int(y.max()) + 1
        ours, theirs, again, seconds, rounds = [], [], [], [0.0, 0.0], [0, 0]
        for seed in range(args.seeds):
            part = split_parts(len(y), seed)
            test = y[part == 2]
            common = (x, y, cats, part, problem, n_classes)
            p, s, r = run_ours(args.program, *common, own, seed, args.stop)
            ours.append(error_of(problem, test, p))
            seconds[0] += s
            rounds[0] += r
            for other in (seed, seed + 1000):
                key = json.dumps([name, args.rows, seed, other, args.stop, sorted(settings.items())])
                if key not in cache:
                    p, s, r = run_catboost(*common, settings, other, args.stop)
                    cache[key] = [error_of(problem, test, p), s, r]
                    if args.cache:
                        json.dump(cache, open(args.cache, "w"))
                e, s, r = cache[key]
                if other == seed:
                    theirs.append(e)
                    seconds[1] += s
                    rounds[1] += r
                else:
                    again.append(e)
        difference = 100 * (np.mean(ours) / np.mean(theirs) - 1)
        noise = 100 * np.mean(np.abs(np.array(again) / np.array(theirs) - 1))
        differences.append(difference)
        n = args.seeds
        print(f"{name}\t{problem}\t{len(y)}\t{np.mean(ours):.6g}\t{np.mean(theirs):.6g}"
              f"\t{difference:+.2f}\t{noise:.2f}\t{seconds[0] / n:.2f}\t{seconds[1] / n:.2f}"
              f"\t{rounds[0] / n:.0f}\t{rounds[1] / n:.0f}", flush=True)
    print(f"median difference {np.median(differences):+.2f} %, "
          f"median absolute {np.median(np.abs(differences)):.2f} %")


if __name__ == "__main__":
    main()
