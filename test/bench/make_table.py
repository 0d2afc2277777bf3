#!/usr/bin/env python3
"""Writes a seeded binary-label table of 28 numbers for train_table and speed_gbm.py.

    make_table.py FILE TRAIN_ROWS TEST_ROWS [SEED [MISSING_SHARE [CATEGORIES]]]

Additive terms and interactions whose parts show in the margins (no pure exclusive-or); 4 columns are
rounded, 5 are log-normal. The first CATEGORIES columns become categories of 20 to 160 levels.
"""
import sys

import numpy as np


def main():
    path, n_train, n_test = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    missing = float(sys.argv[5]) if len(sys.argv) > 5 else 0.0
    n_categories = int(sys.argv[6]) if len(sys.argv) > 6 else 0
    rng = np.random.default_rng(seed)
    n = n_train + n_test
    x = rng.standard_normal((28, n))
    score = (0.8 * np.sin(2 * x[0]) + 0.5 * x[1] + 0.4 * x[2] * (x[3] > 0) + 0.3 * np.abs(x[4])
             + 0.5 * np.maximum(x[5], x[6]) + 0.25 * x[7] ** 2 * (x[8] > -0.5) + 0.2 * x[9]
             + 0.3 * (x[10] + x[11] > 1) + 0.15 * x[24] - 1.2)
    label = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float)
    x[12:16] = np.round(x[12:16] * 2)
    x[20:25] = np.exp(x[20:25])
    x = x.astype(np.float32).astype(np.float64)
    for c in range(n_categories):
        levels = 20 * (c + 1)
        ranks = np.argsort(np.argsort(x[c])) * levels // n
        counts = np.bincount(ranks, minlength=levels)
        order = np.empty(levels)
        order[np.argsort(-counts, kind="stable")] = np.arange(levels)
        x[c] = order[ranks]
    if missing:
        x[rng.random(x.shape) < missing] = np.nan
    part = np.zeros(n)
    part[n_train:] = 2
    with open(path, "wb") as file:
        np.array([n, 30], dtype=np.int64).tofile(file)
        x.tofile(file)
        part.tofile(file)
        label.tofile(file)


main()
