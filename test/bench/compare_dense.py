#!/usr/bin/env python3
"""Compares our LR and KNN with scikit-learn's.

    compare_dense.py [--program P] [--dir DIR] [--rows N] [--folds K] [--seeds S] [--threads T] [--set name=value ...] MODE TABLE ...

TABLE is a csv.gz of DIR with its line in INDEX.tsv there. Needs pandas, scikit-learn, scipy and threadpoolctl. Modes:

    lr        test errors (RMSE, log-loss) over K folds, against the pipeline that AutoGluon's LinearModel is: median
              imputation, standardising, quantile transform of skewed columns, one-hot, LogisticRegression or Ridge
    knn       test errors (RMSE, share of wrong classes) over K folds, against KNeighbors on our own transformed numbers
              and on the raw ones with missing = 0 (which is AutoGluon's)
    speed-lr  CPU time of training and objective on the same transformed rows, alternately, medians of five
    speed-knn CPU time of leaving one out on the same transformed rows, without categories

Errors are means over the folds of S shuffles; "its seeds" is how much scikit-learn's own error differs from shuffle to shuffle (standard
deviation). At the end come the medians over the tables.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import pandas as pd

from compare_gbm import error_of, load, table_index

warnings.filterwarnings("ignore")


def write_table(path, x, part, y):
    with open(path, "wb") as file:
        np.array([x.shape[0], x.shape[1] + 2], dtype=np.int64).tofile(file)
        np.asfortranarray(np.column_stack([x, part, y])).ravel(order="F").tofile(file)


def run_ours(arguments, family, x, y, cats, part, problem, n_classes, *more):
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "t.bin"), os.path.join(folder, "p.bin")
        matrix = os.path.join(folder, "m.bin")
        write_table(path, x, part, y)
        command = [arguments.program, family, path, f"problem={problem}", f"classes={n_classes}",
                   f"threads={arguments.threads}", f"out={out}"]
        if cats:
            command.append("cats=" + ",".join(map(str, cats)))
        command += [m.replace("@matrix", matrix) for m in more] + arguments.set
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        predicted = np.fromfile(out)
        rows = None
        if os.path.exists(matrix):
            shape = np.fromfile(matrix, dtype=np.int64, count=2)
            rows = np.fromfile(matrix, offset=16).reshape(shape)
    runs = []
    for line in text.splitlines():
        words = line.split()
        if words[0] == "train":
            runs.append(dict(zip(words[1::2], map(float, words[2::2]))))
    if problem != "regression":
        predicted = predicted.reshape(-1, n_classes)
    return predicted, runs, rows


def linear_pipeline(x, y, cats, problem, C):
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, StandardScaler

    frame = pd.DataFrame(x)
    numeric = [c for c in range(x.shape[1]) if c not in cats and frame[c].nunique() > 1]
    skewed = [c for c in numeric if not abs(frame[c].skew()) <= 0.99]
    plain = [c for c in numeric if c not in skewed]
    steps = [("plain", Pipeline([("i", SimpleImputer(strategy="median")),
                                 ("s", StandardScaler())]), plain),
             ("skewed", Pipeline([("i", SimpleImputer(strategy="median")),
                                  ("q", QuantileTransformer(output_distribution="normal"))]), skewed),
             ("cats", OneHotEncoder(handle_unknown="ignore"), cats)]
    model = (Ridge(alpha=1 / C) if problem == "regression"
             else LogisticRegression(C=C, max_iter=10000))
    return Pipeline([("t", ColumnTransformer([s for s in steps if s[2]])), ("m", model)])


def whole_proba(model, x, problem, n_classes):
    if problem == "regression":
        return model.predict(x)
    out = np.zeros((len(x), n_classes))
    out[:, model.classes_.astype(int)] = model.predict_proba(x)
    return out


def wrong(problem, y, predicted):
    if problem == "regression":
        return error_of(problem, y, predicted)
    return float(np.mean(np.argmax(predicted, axis=1) != y))


def noise_of(arguments, errors):
    """From shuffle to shuffle, percent; errors: of each shuffle's folds, one shuffle behind the other."""
    by_seed = np.mean(np.reshape(errors, (arguments.seeds, arguments.folds)), axis=1)
    return 100 * np.std(by_seed, ddof=1) / np.mean(by_seed) if arguments.seeds > 1 else float("nan")


def compare_lr(arguments, name, x, y, cats, problem, n_classes, parts):
    errors = []
    for part in parts:
        train, test = part == 0, part == 2
        ours, runs, _ = run_ours(arguments, "LR", x, y, cats, part, problem, n_classes)
        model = linear_pipeline(x[train], y[train], cats, problem, 1.0)
        model.fit(x[train], y[train])
        theirs = whole_proba(model, x[test], problem, n_classes)
        errors.append((error_of(problem, y[test], ours), error_of(problem, y[test], theirs),
                       wrong(problem, y[test], ours), wrong(problem, y[test], theirs),
                       runs[0]["converged"]))
    ours, theirs, a, b, converged = np.mean(errors, axis=0)
    noise = noise_of(arguments, [e[1] for e in errors])
    print(f"{name:22s} ours {ours:<10.5g} sklearn {theirs:<10.5g} {100 * (ours / theirs - 1):+7.2f} %"
          f"   its seeds {noise:.2f} %   wrong {a:.5g} {b:.5g}{'' if converged == 1 else '   not converged'}", flush=True)
    return 100 * (ours / theirs - 1), noise


def compare_knn(arguments, name, x, y, cats, problem, n_classes, parts):
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    errors = []
    kind = KNeighborsRegressor if problem == "regression" else KNeighborsClassifier
    numeric = [c for c in range(x.shape[1]) if c not in cats]
    for part in parts:
        train, test = part == 0, part == 2
        row = []
        for more in ([], ["category_distance=0"]):
            ours, _, _ = run_ours(arguments, "KNN", x, y, cats, part, problem, n_classes, *more)
            row.append(wrong(problem, y[test], ours))
        raw = np.nan_to_num(x[:, numeric]) if numeric else np.zeros((len(x), 1))
        model = kind(n_neighbors=5).fit(raw[train], y[train])
        row.append(wrong(problem, y[test], whole_proba(model, raw[test], problem, n_classes)))
        errors.append(row)
    mean = np.mean(errors, axis=0)
    noise = noise_of(arguments, [e[2] for e in errors])
    print(f"{name:22s} ours {mean[0]:<9.5g} without categories {mean[1]:<9.5g} raw sklearn {mean[2]:<9.5g}"
          f" {100 * (mean[0] / mean[2] - 1):+7.2f} %   its seeds {noise:.2f} %", flush=True)
    return 100 * (mean[0] / mean[2] - 1), noise


def objective(problem, rows, y, model, C):
    n = len(y)
    if problem == "regression":
        w, b = model.coef_, model.intercept_
        spread = y.std()
        r = (rows @ w + b - y) / spread
        return 0.5 * np.mean(r * r) + 0.5 * np.sum((w / spread) ** 2) / (C * n)
    p = model.predict_proba(rows)[np.arange(n), y.astype(int)]
    w = model.coef_
    return -np.mean(np.log(np.clip(p, 1e-300, 1))) + 0.5 * np.sum(w * w) / (C * n)


def speed_lr(arguments, name, x, y, cats, problem, n_classes, parts):
    import scipy.sparse
    from sklearn.linear_model import LogisticRegression, Ridge
    from threadpoolctl import threadpool_limits

    part = np.zeros(len(y))
    part[-1] = 2
    ours, theirs = [], []
    _, _, rows = run_ours(arguments, "LR", x, y, cats, part, problem, n_classes, "matrix=@matrix")
    y_train = y[part == 0]
    sparse = np.mean(rows != 0) < 0.2
    fed = scipy.sparse.csr_matrix(rows) if sparse else rows
    for _ in range(5):
        _, runs, _ = run_ours(arguments, "LR", x, y, cats, part, problem, n_classes, "repeat=3")
        ours.append(min(r["cpu"] for r in runs))
        last = runs[-1]
        model = (Ridge(alpha=1.0) if problem == "regression"
                 else LogisticRegression(C=1.0, max_iter=10000))
        with threadpool_limits(arguments.threads):
            start = time.process_time()
            model.fit(fed, y_train)
            theirs.append(time.process_time() - start)
    a, b = np.median(ours), np.median(theirs)
    iterations = model.n_iter_[0] if hasattr(model, "n_iter_") and model.n_iter_ is not None else 0
    print(f"{name:22s} {rows.shape[0]:6d} x {rows.shape[1]:5d} x {n_classes:3d} {'sparse' if sparse else 'dense '} "
          f"ours {1e3 * a:8.1f} ms ({int(last['iterations']):3d} it.) sklearn {1e3 * b:8.1f} ms ({iterations:3d} it.) "
          f"ratio {a / b:5.2f}   objective {last['objective']:.7f} {objective(problem, fed, y_train, model, 1.0):.7f}",
          flush=True)


def speed_knn(arguments, name, x, y, cats, problem, n_classes, parts):
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
    from threadpoolctl import threadpool_limits

    numeric = [c for c in range(x.shape[1]) if c not in cats]
    part = np.zeros(len(y))
    part[-1] = 2
    ours, theirs = [], []
    _, _, rows = run_ours(arguments, "KNN", np.nan_to_num(x[:, numeric]), y, [], part, problem, n_classes,
                          "matrix=@matrix")
    kind = KNeighborsRegressor if problem == "regression" else KNeighborsClassifier
    rows32 = rows.astype(np.float32)
    y_train = y[part == 0]
    for _ in range(3):
        _, runs, _ = run_ours(arguments, "KNN", np.nan_to_num(x[:, numeric]), y, [], part, problem, n_classes,
                              "loo=1", "max_rows=1000000")
        ours.append(runs[0]["cpu"])
        model = kind(n_neighbors=5, algorithm="brute").fit(rows32, y_train)
        with threadpool_limits(arguments.threads):
            start = time.process_time()
            model.kneighbors(None, 5)
            theirs.append(time.process_time() - start)
    a, b = np.median(ours), np.median(theirs)
    print(f"{name:22s} {rows.shape[0]:6d} x {rows.shape[1]:4d} ours {1e3 * a:8.1f} ms sklearn brute {1e3 * b:8.1f} ms "
          f"ratio {a / b:5.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/train_dense")
    parser.add_argument("--dir", default="../shared/datasets")
    parser.add_argument("--rows", type=int, default=10000)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("mode", choices=["lr", "knn", "speed-lr", "speed-knn"])
    parser.add_argument("tables", nargs="+")
    arguments = parser.parse_args()
    index = table_index(arguments.dir)
    mode = {"lr": compare_lr, "knn": compare_knn, "speed-lr": speed_lr, "speed-knn": speed_knn}[arguments.mode]
    found = []
    for name in arguments.tables:
        x, y, cats, problem = load(arguments.dir, name, index, arguments.rows)
        order = np.random.RandomState(0).permutation(len(y))
        x, y = x[order], y[order]
        n_classes = 1 if problem == "regression" else int(y.max()) + 1
        if problem == "multiclass" and n_classes == 2:
            problem = "binary"
        parts = []
        for seed in range(arguments.seeds):
            order = np.random.RandomState(seed).permutation(len(y))
            fold = np.empty(len(y), dtype=int)
            fold[order] = np.arange(len(y)) % arguments.folds
            parts += [np.where(fold == k, 2.0, 0.0) for k in range(arguments.folds)]
        try:
            found.append(mode(arguments, name, x, y, cats, problem, n_classes, parts))
        except subprocess.CalledProcessError as error:
            print(name, error.stderr, file=sys.stderr)
    found = [f for f in found if f is not None]
    if found:
        difference, noise = np.transpose(found)
        print(f"median difference {np.median(difference):+.2f} %, median absolute {np.median(np.abs(difference)):.2f} %, "
              f"its own between seeds {np.nanmedian(noise):.2f} %")


main()
