#!/usr/bin/env python3
"""Compares our CAT with CatBoost: same folds, same parameters, same stopping rows.

    compare_cat.py [--program P] [--seeds N] [--folds N] [--stop N] [--rows N] [--cache FILE]
                   [--set name=value ...] [--ours name=value ...] TABLE ...

Of TABLE's folds (paired.py) an eighth of the rows to train on are those to stop by; none with --stop 0. --ours sets
what only ours gets, --cache keeps CatBoost's answers between runs, by table, rows, fold, seed and parameters.
Errors are RMSE or log-loss.
"""
import argparse
import json
import os
import time

from compare_gbm import error_of, load, run_ours, table_index
from paired import Comparison, parts_of


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
    parser.add_argument("--folds", type=int, default=5)
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
    comparison = Comparison("CatBoost")
    print(comparison.header(), flush=True)
    for name in args.tables:
        x, y, cats, problem = load(args.dir, name, index, args.rows)
        n_classes = 0 if problem == "regression" else int(y.max()) + 1
        ours, theirs, again, seconds = [], [], [], [0.0, 0.0]
        runs = [(seed, fold, part) for seed in range(args.seeds)
                for fold, part in enumerate(parts_of(y, problem, seed, args.folds,
                                                     0.125 if args.stop > 0 else 0.0))]
        for seed, fold, part in runs:
            test = y[part == 2]
            common = (x, y, cats, part, problem, n_classes)
            p, s, _ = run_ours(args.program, *common, own, seed, args.stop)
            ours.append(error_of(problem, test, p))
            seconds[0] += s
            for other, errors in ((seed, theirs), (seed + 1000, again)):
                key = json.dumps([name, args.rows, seed, fold, args.folds, other, args.stop,
                                  sorted(settings.items())])
                if key not in cache:
                    p, s, _ = run_catboost(*common, settings, other, args.stop)
                    cache[key] = [error_of(problem, test, p), s]
                    if args.cache:
                        json.dump(cache, open(args.cache, "w"))
                errors.append(cache[key][0])
                seconds[1] += cache[key][1] if other == seed else 0.0
        n = len(runs)
        print(comparison.line(comparison.add(name, ours, theirs, again, seconds[0] / n,
                                             seconds[1] / n)), flush=True)
    print()
    print(comparison.report())


if __name__ == "__main__":
    main()
