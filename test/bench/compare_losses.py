#!/usr/bin/env python3
"""Compares the losses of our GBM with LightGBM's: same rows, same parameters, so many rounds.

    compare_losses.py [--program P] [--seeds N] [--rounds N] [--rows N] TABLE ...

Tables as in compare_gbm.py, of regression. Prints, for each loss, the test error that it is meant to lower (mean of the seeds)
of both, and the signed relative difference (negative: ours is lower); labels that a loss can't have are skipped.
"""
import argparse
import os

import numpy as np

from compare_gbm import load, run_ours, split_parts, table_index


def pinball(level):
    return lambda y, p: np.mean(np.maximum(level * (y - p), (level - 1) * (y - p)))


def tweedie(y, p, power=1.5):
    return np.mean(-y * p ** (1 - power) / (1 - power) + p ** (2 - power) / (2 - power))


LOSSES = [
    ("mse", {}, lambda y, p: np.sqrt(np.mean((y - p) ** 2)), None),
    ("mae", {}, lambda y, p: np.mean(np.abs(y - p)), None),
    ("quantile", {"alpha": 0.1}, pinball(0.1), None),
    ("quantile", {"alpha": 0.9}, pinball(0.9), None),
    ("mape", {}, lambda y, p: np.mean(np.abs(y - p) / np.maximum(1, np.abs(y))), None),
    ("huber", {"alpha": "spread"}, lambda y, p: np.mean(np.abs(y - p)), None),
    ("fair", {"fair_c": "spread"}, lambda y, p: np.mean(np.abs(y - p)), None),
    ("poisson", {}, lambda y, p: np.mean(p - y * np.log(p)), 0.0),
    ("tweedie", {"tweedie_variance_power": 1.5}, tweedie, 0.0),
    ("gamma", {}, lambda y, p: np.mean(y / p + np.log(p)), 1e-300),
]


def run_lightgbm(x, y, cats, part, settings, seed):
    import lightgbm

    params = {"verbose": -1, "num_threads": 1, "seed": seed, "deterministic": True,
              "force_col_wise": True}
    params.update({k: v for k, v in settings.items() if k != "num_boost_round"})
    train = lightgbm.Dataset(x[part == 0], y[part == 0], categorical_feature=cats)
    model = lightgbm.train(params, train, int(settings["num_boost_round"]))
    return model.predict(x[part == 2])


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=os.path.join(here, "../../build/bench/train_table"))
    parser.add_argument("--dir", default=os.path.join(here, "../../../shared/datasets"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--rows", type=int, default=10000)
    parser.add_argument("tables", nargs="+")
    args = parser.parse_args()
    index = table_index(args.dir)
    print("table\tloss\tours\tlightgbm\tdiff_percent", flush=True)
    differences = []
    for name in args.tables:
        x, y, cats, problem = load(args.dir, name, index, args.rows)
        assert problem == "regression"
        for loss, more, error, least in LOSSES:
            if least is not None and y.min() < least:
                continue
            more = {k: float(np.std(y) / 4) if v == "spread" else v for k, v in more.items()}
            settings = {"objective": loss, "learning_rate": 0.1, "num_leaves": 31,
                        "num_boost_round": args.rounds, **more}
            ours, theirs = [], []
            for seed in range(args.seeds):
                part = split_parts(len(y), seed)
                part[part == 1] = 0
                p, _, _ = run_ours(args.program, x, y, cats, part, problem, 0, settings, seed, 0)
                ours.append(error(y[part == 2], p))
                theirs.append(error(y[part == 2], run_lightgbm(x, y, cats, part, settings, seed)))
            # deviances may be of any sign: differences are relative to the size of the error's scale
            scale = abs(np.mean(theirs))
            difference = 100 * (np.mean(ours) - np.mean(theirs)) / scale
            differences.append(difference)
            words = " ".join([loss] + [f"{k}={v:.4g}" for k, v in more.items()])
            print(f"{name}\t{words}\t{np.mean(ours):.6g}\t{np.mean(theirs):.6g}\t{difference:+.2f}",
                  flush=True)
    print(f"median difference {np.median(differences):+.2f} %, "
          f"median absolute {np.median(np.abs(differences)):.2f} %")


if __name__ == "__main__":
    main()
