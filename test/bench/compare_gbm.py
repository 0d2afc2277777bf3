#!/usr/bin/env python3
"""Compares our GBM with LightGBM, or our XGB with XGBoost: same folds, same parameters, same stopping rows.

    compare_gbm.py [--program P] [--family GBM|XGB] [--seeds N] [--folds N] [--stop N] [--rows N] [--set name=value ...] TABLE ...

TABLE is a csv or csv.gz of DIR (--dir), with its line in INDEX.tsv there. Needs lightgbm or xgboost, pandas and scikit-learn.
What is printed is told in paired.py: errors are RMSE or log-loss, seconds CPU time of a fit; an eighth of a fold's rows are those to
stop by. Without draws (bagging_fraction and the like) another seed changes nothing for the libraries. XGBoost has categories as
numbers by frequency, for ours are as well: --family XGB takes them so.
"""
import argparse
import os
import subprocess
import tempfile
import time

import numpy as np
import pandas as pd

from paired import Comparison, parts_of


def table_index(folder):
    index = pd.read_csv(os.path.join(folder, "INDEX.tsv"), sep="\t", keep_default_na=False)
    return {row["file"].removesuffix(".csv"): row for _, row in index.iterrows()}


def load(folder, name, index, most_rows):
    row = index[name]
    frame = pd.read_csv(os.path.join(folder, name + ".csv.gz"), low_memory=False)
    drops = [c.strip() for c in row["drop_columns"].split(";") if c.strip()]
    frame = frame.drop(columns=[c for c in drops if c in frame.columns])
    label = row["label"]
    frame = frame[frame[label].notna()]
    if row["problem_type"] == "regression":
        frame[label] = pd.to_numeric(frame[label], errors="coerce")
        frame = frame[frame[label].notna()]
    if most_rows and len(frame) > most_rows:
        frame = frame.sample(most_rows, random_state=0)
    frame = frame.reset_index(drop=True)
    target = frame.pop(label)
    if row["problem_type"] == "regression":
        y = target.to_numpy(float)
    else:
        y = pd.factorize(target, sort=True)[0].astype(float)
    columns, cats = [], []
    for column in frame.columns:
        values = frame[column]
        if values.dtype == bool or pd.api.types.is_numeric_dtype(values):
            columns.append(values.to_numpy(float))
            continue
        counts = values.value_counts()
        if len(counts) < 2 or len(counts) > 0.5 * values.notna().sum():
            continue
        order = {level: code for code, level in enumerate(counts.index)}
        cats.append(len(columns))
        columns.append(values.map(order).astype(float).to_numpy())
    return np.column_stack(columns), y, cats, row["problem_type"]


def split_parts(n, seed):
    order = np.random.RandomState(seed).permutation(n)
    part = np.zeros(n)
    part[order[: n // 5]] = 2
    part[order[n // 5 : n // 5 + max(n // 10, 1)]] = 1
    return part


def error_of(problem, y, predicted):
    if problem == "regression":
        return float(np.sqrt(np.mean((y - predicted) ** 2)))
    p = predicted[np.arange(len(y)), y.astype(int)]
    return float(-np.mean(np.log(np.clip(p, 1e-15, 1))))


def run_ours(program, x, y, cats, part, problem, n_classes, settings, seed, stop, threads=1):
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "t.bin"), os.path.join(folder, "p.bin")
        with open(path, "wb") as file:
            np.array([x.shape[0], x.shape[1] + 2], dtype=np.int64).tofile(file)
            np.asfortranarray(np.column_stack([x, part, y])).ravel(order="F").tofile(file)
        command = [program, path, f"family={settings.get('family', 'GBM')}", f"problem={problem}",
                   f"classes={n_classes}", f"seed={seed}", f"stop={stop}", f"threads={threads}",
                   f"out={out}"]
        if cats:
            command.append("cats=" + ",".join(map(str, cats)))
        command += [f"{k}={v}" for k, v in settings.items() if k != "family"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        line = dict(word.split("=") for word in text.split())
        predicted = np.fromfile(out)
    if problem != "regression":
        predicted = predicted.reshape(-1, n_classes)
    return predicted, float(line["bin_s"]) + float(line["train_s"]), int(line["best"])


def run_lightgbm(x, y, cats, part, problem, n_classes, settings, seed, stop, threads=1):
    import lightgbm

    params = {"learning_rate": 0.05, "num_leaves": 31, "verbose": -1, "num_threads": threads,
              "seed": seed, "deterministic": True, "force_col_wise": True}
    params.update({k: v for k, v in settings.items() if k != "num_boost_round"})
    params["objective"] = problem
    if problem == "multiclass":
        params["num_class"] = n_classes
    params["metric"] = {"regression": "rmse", "binary": "binary_logloss",
                        "multiclass": "multi_logloss"}[problem]
    start = time.process_time()
    train = lightgbm.Dataset(x[part == 0], y[part == 0], categorical_feature=cats)
    valid = train.create_valid(x[part == 1], y[part == 1])
    model = lightgbm.train(params, train, int(settings.get("num_boost_round", 10000)),
                           valid_sets=[valid],
                           callbacks=[lightgbm.early_stopping(stop, verbose=False)])
    spent = time.process_time() - start
    predicted = model.predict(x[part == 2], num_iteration=model.best_iteration)
    if problem == "binary":
        predicted = np.column_stack([1 - predicted, predicted])
    return predicted, spent, model.best_iteration


def run_xgboost(x, y, cats, part, problem, n_classes, settings, seed, stop, threads=1):
    import xgboost

    del cats
    params = {"eta": 0.05, "max_depth": 6, "nthread": threads, "seed": seed, "tree_method": "hist", "max_bin": 255}
    params.update({("eta" if k == "learning_rate" else k): v for k, v in settings.items() if k != "n_estimators"})
    params["objective"] = {"regression": "reg:squarederror", "binary": "binary:logistic",
                           "multiclass": "multi:softprob"}[problem]
    params["eval_metric"] = {"regression": "rmse", "binary": "logloss", "multiclass": "mlogloss"}[problem]
    if problem == "multiclass":
        params["num_class"] = n_classes
    start = time.process_time()
    train = xgboost.QuantileDMatrix(x[part == 0], y[part == 0], max_bin=255, nthread=threads)
    valid = xgboost.QuantileDMatrix(x[part == 1], y[part == 1], ref=train, max_bin=255, nthread=threads)
    model = xgboost.train(params, train, int(settings.get("n_estimators", 10000)), evals=[(valid, "valid")],
                          early_stopping_rounds=stop, verbose_eval=False)
    spent = time.process_time() - start
    predicted = model.predict(xgboost.DMatrix(x[part == 2]), iteration_range=(0, model.best_iteration + 1))
    if problem == "binary":
        predicted = np.column_stack([1 - predicted, predicted])
    return predicted, spent, model.best_iteration + 1


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=os.path.join(here, "../../build/bench/train_table"))
    parser.add_argument("--dir", default=os.path.join(here, "../../../shared/datasets"))
    parser.add_argument("--family", default="GBM", choices=["GBM", "XGB"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--stop", type=int, default=100)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("tables", nargs="+")
    args = parser.parse_args()
    settings = dict(item.split("=") for item in args.set)
    is_xgb = args.family == "XGB"
    own = {"family": args.family, "learning_rate": "0.05", **settings}
    theirs_run = run_xgboost if is_xgb else run_lightgbm
    index = table_index(args.dir)
    comparison = Comparison("XGBoost" if is_xgb else "LightGBM")
    print(comparison.header(), flush=True)
    for name in args.tables:
        x, y, cats, problem = load(args.dir, name, index, args.rows)
        n_classes = 0 if problem == "regression" else int(y.max()) + 1
        cats = [] if is_xgb else cats
        ours, theirs, again, seconds = [], [], [], [0.0, 0.0]
        for seed in range(args.seeds):
            for part in parts_of(y, problem, seed, args.folds):
                test = y[part == 2]
                common = (x, y, cats, part, problem, n_classes)
                p, s, _ = run_ours(args.program, *common, own, seed, args.stop)
                ours.append(error_of(problem, test, p))
                seconds[0] += s
                p, s, _ = theirs_run(*common, settings, seed, args.stop)
                theirs.append(error_of(problem, test, p))
                seconds[1] += s
                p, _, _ = theirs_run(*common, settings, seed + 1000, args.stop)
                again.append(error_of(problem, test, p))
        n = len(ours)
        print(comparison.line(comparison.add(name, ours, theirs, again, seconds[0] / n, seconds[1] / n)), flush=True)
    print()
    print(comparison.report())


if __name__ == "__main__":
    main()
