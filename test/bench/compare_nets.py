#!/usr/bin/env python3
"""Compares our nets with the same ones in PyTorch: same rows, parameters, batches and stopping rows.

    compare_nets.py [--program P] [--seeds N] [--family F ...] [--time] [--set name=value ...] TABLE ...
    compare_nets.py --autogluon STATE [--ours F] ... TABLE ...
    compare_nets.py --rivals STATE --family F ... TABLE ...

With --autogluon the peer is AutoGluon's own family of that name (needs autogluon.tabular with torch and fastai), given the same rows to
train on, to stop by and to be tested on; seed s of the peer is seed s of its parameters on split s. Its errors are kept in the file STATE, and not made again.
--ours sets another family of ours beside it.

With --rivals each family of ours (REALMLP, TABM) is set beside the better of our NN_TORCH and FASTAI, all on the same rows of split s with seed s;
"wins" are splits.

TABLE is a csv or csv.gz of --dir, with its line in INDEX.tsv there. Needs torch (CPU), pandas and
scikit-learn. Prints for each table and family the test error (RMSE or log-loss; mean of the
seeds) of ours and PyTorch's, the signed relative difference (negative: ours is lower), PyTorch's
spread over its own seeds, and wall time per epoch. REALMLP has no twin here: it is set beside PyTorch's NN_TORCH.
"""
import argparse
import os
import subprocess
import tempfile
import time

import numpy as np
import torch
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from torch import nn

from compare_gbm import error_of, load, split_parts, table_index


def run_ours(program, family, x, y, cats, part, problem, n_classes, settings, seed, threads):
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "t.bin"), os.path.join(folder, "p.bin")
        with open(path, "wb") as file:
            np.array([x.shape[0], x.shape[1] + 2], dtype=np.int64).tofile(file)
            np.asfortranarray(np.column_stack([x, part, y])).ravel(order="F").tofile(file)
        command = [program, path, f"family={family}", f"problem={problem}", f"classes={n_classes}",
                   f"seed={seed}", f"threads={threads}", f"out={out}"]
        if cats:
            command.append("cats=" + ",".join(map(str, cats)))
        command += [f"{k}={v}" for k, v in settings.items()]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        line = dict(word.split("=") for word in text.split())
        predicted = np.fromfile(out)
    if problem != "regression":
        predicted = predicted.reshape(-1, n_classes)
    return predicted, float(line["wall_s"]), int(line["epochs"])


def transform(x, cats, part, bend):
    """Numbers imputed and scaled, skewed ones to a normal curve; codes with 0 for missing and rare."""
    train = part == 0
    numeric = [c for c in range(x.shape[1]) if c not in cats]
    numbers, codes, sizes = [], [], []
    for c in numeric:
        column = np.where(np.isfinite(x[:, [c]]), x[:, [c]], np.nan)
        if np.all(np.isnan(column[train])) or np.nanstd(column[train]) == 0:
            continue
        missing = np.isnan(column).astype(float)
        column = SimpleImputer(strategy="median").fit(column[train]).transform(column)
        deviation = column[train] - column[train].mean()
        skew = np.mean(deviation**3) / np.mean(deviation**2) ** 1.5
        if bend and abs(skew) > 0.99:
            scaler = QuantileTransformer(output_distribution="normal", random_state=0,
                                         n_quantiles=min(1000, int(train.sum())))
        else:
            scaler = StandardScaler()
        numbers.append(scaler.fit(column[train]).transform(column))
        if missing[train].any():
            numbers.append(missing)
    for c in cats:
        column = np.where(np.isnan(x[:, c]), -1, x[:, c]).astype(int)
        kept = sorted(set(column[train]))[:101]
        place = {level: i + 1 for i, level in enumerate(kept)}
        codes.append(np.array([place.get(v, 0) for v in column]))
        sizes.append(len(kept) + 1)
    numbers = np.column_stack(numbers) if numbers else np.zeros((len(x), 0))
    codes = np.column_stack(codes) if codes else np.zeros((len(x), 0), dtype=int)
    return torch.tensor(numbers, dtype=torch.float32), torch.tensor(codes), sizes


class Net(nn.Module):
    def __init__(self, family, n_numbers, sizes, n_out):
        super().__init__()
        fastai = family == "FASTAI"
        self.one_hot = [not fastai and n < 4 for n in sizes]
        self.sizes = sizes
        widths, self.tables = [], nn.ModuleList()
        for n, one_hot in zip(sizes, self.one_hot):
            if one_hot:
                widths.append(n)
                continue
            width = min(600, round(1.6 * n**0.56)) if fastai else int(max(2, min(100, 1.6 * n**0.56)))
            table = nn.Embedding(n, width)
            if fastai:
                nn.init.trunc_normal_(table.weight, std=0.01)
            self.tables.append(table)
            widths.append(width)
        n_in = n_numbers + sum(widths)
        self.embedding_drop = nn.Dropout(0.1 if fastai else 0.0)
        self.norm = nn.BatchNorm1d(n_numbers) if fastai and n_numbers > 0 else None
        if fastai:
            hidden = [200, 100] if n_out <= 2 else [2 * max(2 * n_out, 100), max(2 * n_out, 100)]
        else:
            hidden = [128] * 4
        layers = []
        for i, n in enumerate(hidden):
            layers += [nn.Linear(n_in, n, bias=not fastai), nn.ReLU()]
            if fastai:
                layers += [nn.BatchNorm1d(n), nn.Dropout(0.1)]
            elif i + 1 < len(hidden):
                layers.append(nn.Dropout(0.1))
            n_in = n
        layers.append(nn.Linear(n_in, n_out))
        self.layers = nn.Sequential(*layers)

    def forward(self, numbers, codes):
        parts, embedded, at = [numbers if self.norm is None else self.norm(numbers)], [], 0
        for c, one_hot in enumerate(self.one_hot):
            if one_hot:
                parts.append(nn.functional.one_hot(codes[:, c], self.sizes[c]).float())
            else:
                embedded.append(self.tables[at](codes[:, c]))
                at += 1
        if embedded:
            parts.append(self.embedding_drop(torch.cat(embedded, 1)))
        return self.layers(torch.cat(parts, 1))


def run_torch(family, x, y, cats, part, problem, n_classes, seed, most_epochs=None):
    torch.manual_seed(seed)
    fastai = family == "FASTAI"
    numbers, codes, sizes = transform(x, cats, part, bend=not fastai)
    rows = [torch.tensor(np.flatnonzero(part == p)) for p in range(3)]
    n = len(rows[0])
    regression = problem == "regression"
    model = Net(family, numbers.shape[1], sizes, 1 if regression else n_classes)
    batch = min(2 ** (3 + int(np.log10(n))), 512, n) if not fastai else (256 if n >= 256 else min(32, n))
    epochs = most_epochs or (30 if fastai else 1000)
    per_epoch = n // batch
    mean, spread = y[part == 0].mean(), y[part == 0].std()
    low, high = y[part == 0].min(), y[part == 0].max()
    low = max(0.0, low - 0.05 * spread) if low >= 0 else low - 0.05 * spread
    high = high + 0.05 * spread
    target = torch.tensor((y - mean) / spread if fastai else y, dtype=torch.float32)
    labels = torch.tensor(y.astype(int)) if not regression else None

    def values(logits):
        if not regression:
            return torch.softmax(logits, 1)
        if fastai:
            return logits[:, 0] * spread + mean
        return torch.sigmoid(logits[:, 0]) * (high - low) + low

    def loss_of(logits, at):
        if not regression:
            return nn.functional.cross_entropy(logits, labels[at])
        if fastai:
            return nn.functional.mse_loss(logits[:, 0], target[at])
        return nn.functional.l1_loss(values(logits), target[at])

    if fastai:
        decayed = [p for p in model.parameters() if p.ndim > 1]
        others = [p for p in model.parameters() if p.ndim <= 1]
        optimiser = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01},
                                       {"params": others, "weight_decay": 0.0}],
                                      lr=0.01, eps=1e-5, betas=(0.95, 0.99))
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, 0.01, total_steps=epochs * per_epoch, pct_start=0.25, div_factor=25,
            final_div_factor=4000, base_momentum=0.85, max_momentum=0.95)
    else:
        optimiser = torch.optim.Adam(model.parameters(), lr=3e-4, weight_decay=1e-6)
    best, best_epoch, kept, start = np.inf, 0, None, time.perf_counter()
    for epoch in range(1, epochs + 1):
        model.train()
        order = rows[0][torch.randperm(n)]
        for b in range(per_epoch):
            at = order[b * batch : (b + 1) * batch]
            optimiser.zero_grad()
            loss_of(model(numbers[at], codes[at]), at).backward()
            optimiser.step()
            if fastai:
                schedule.step()
        model.eval()
        with torch.no_grad():
            predicted = values(model(numbers[rows[1]], codes[rows[1]])).numpy()
        score = error_of(problem, y[part == 1], predicted)
        if score < best:
            best, best_epoch = score, epoch
            kept = {k: v.clone() for k, v in model.state_dict().items()}
        elif epoch - best_epoch >= (20 if fastai else 20 + 0.5 * best_epoch):
            break
    spent = time.perf_counter() - start
    model.load_state_dict(kept)
    model.eval()
    with torch.no_grad():
        predicted = values(model(numbers[rows[2]], codes[rows[2]])).numpy().astype(float)
    return predicted, spent, epoch


PEER_SEED = {"NN_TORCH": "seed_value", "FASTAI": "random_seed"}


def run_autogluon(family, x, y, cats, part, problem, n_classes, split, seed, name, state):
    """The test error of AutoGluon's family, from the state file where it is there."""
    key = "\t".join((name, family, str(len(y)), str(split), str(seed)))
    if os.path.exists(state):
        for line in open(state):
            if line.startswith(key + "\t"):
                return float(line.split("\t")[-1])
    import pandas as pd
    from autogluon.tabular import TabularPredictor

    frame = pd.DataFrame({f"c{i}": x[:, i] for i in range(x.shape[1])})
    for i in cats:
        frame[f"c{i}"] = [None if np.isnan(v) else f"l{int(v)}" for v in x[:, i]]
    frame["label"] = y if problem == "regression" else y.astype(int)
    metric = "root_mean_squared_error" if problem == "regression" else "log_loss"
    test = frame[part == 2].drop(columns="label")
    with tempfile.TemporaryDirectory() as folder:
        predictor = TabularPredictor("label", problem, metric, path=folder, verbosity=0)
        predictor.fit(frame[part == 0], tuning_data=frame[part == 1], fit_weighted_ensemble=False,
                      hyperparameters={family: {PEER_SEED[family]: seed}}, num_cpus=1, num_gpus=0, calibrate=False)
        if problem == "regression":
            predicted = predictor.predict(test).to_numpy(float)
        else:
            proba = predictor.predict_proba(test)
            predicted = np.zeros((len(test), n_classes))
            for c in proba.columns:
                predicted[:, int(c)] = proba[c].to_numpy(float)
    error = error_of(problem, y[part == 2], predicted)
    with open(state, "a") as file:
        file.write(f"{key}\t{error:.9g}\n")
    return error


def compare_autogluon(args, settings, index):
    """Split s with seed s, and for the noise between seeds the first split with all seeds."""
    differences = {family: [] for family in args.family}
    noises = {family: [] for family in args.family}
    print("table\tfamily\trows\tours\tautogluon\tdiff_percent\tits_seeds_percent", flush=True)
    for name in args.tables:
        x, y, cats, problem = load(args.dir, name, index, args.rows)
        n_classes = 0 if problem == "regression" else int(y.max()) + 1
        for family in args.family:
            ours, theirs, again = [], [], []
            for split in range(args.splits):
                part = split_parts(len(y), split)
                common = (x, y, cats, part, problem, n_classes)
                own = [error_of(problem, y[part == 2], run_ours(args.program, args.ours or family, *common, settings, s, args.threads)[0])
                       for s in range(args.seeds)]
                ours.append(np.mean(own))
                seeds = range(args.seeds) if split == 0 else [split]
                its = [run_autogluon(family, *common, split, s, name, args.autogluon) for s in seeds]
                theirs.append(np.mean(its))
                again = its if split == 0 else again
            difference = 100 * (np.mean(ours) / np.mean(theirs) - 1)
            noise = 100 * np.std(again, ddof=1) / np.mean(again) if len(again) > 1 else float("nan")
            differences[family].append(difference)
            noises[family].append(noise)
            print(f"{name}\t{family}\t{len(y)}\t{np.mean(ours):.6g}\t{np.mean(theirs):.6g}\t{difference:+.2f}\t{noise:.2f}", flush=True)
    for family, d in differences.items():
        print(f"{family}: median difference {np.median(d):+.2f} %, median absolute {np.median(np.abs(d)):.2f} %, "
              f"its own between seeds {np.nanmedian(noises[family]):.2f} %")


def run_rival(args, settings, family, x, y, cats, part, problem, n_classes, split, name):
    """The test error of ours, from the state file where it is there."""
    key = "\t".join((name, family, str(len(y)), str(split), str(sorted(settings.items()))))
    if os.path.exists(args.rivals):
        for line in open(args.rivals):
            if line.startswith(key + "\t"):
                return float(line.split("\t")[-1])
    predicted = run_ours(args.program, family, x, y, cats, part, problem, n_classes, settings, split, args.threads)[0]
    error = error_of(problem, y[part == 2], predicted)
    with open(args.rivals, "a") as file:
        file.write(f"{key}\t{error:.9g}\n")
    return error


def compare_rivals(args, settings, index):
    """The namesakes have no settings of ours."""
    differences = {(family, peer): [] for family in args.family for peer in ("NN_TORCH", "FASTAI", "better")}
    print("table\trows\tNN_TORCH\tFASTAI\t" + "\t".join(f"{f}\tover_better_percent\twins" for f in args.family), flush=True)
    for name in args.tables:
        x, y, cats, problem = load(args.dir, name, index, args.rows)
        n_classes = 0 if problem == "regression" else int(y.max()) + 1
        errors = {}
        for family in ["NN_TORCH", "FASTAI", *args.family]:
            errors[family] = np.array([
                run_rival(args, settings if family in args.family else {}, family, x, y, cats, split_parts(len(y), s), problem, n_classes, s, name)
                for s in range(args.splits)])
        mean = {family: e.mean() for family, e in errors.items()}
        words = [name, str(len(y)), f"{mean['NN_TORCH']:.6g}", f"{mean['FASTAI']:.6g}"]
        for family in args.family:
            peers = {peer: mean[peer] for peer in ("NN_TORCH", "FASTAI")}
            peers["better"] = min(peers.values())
            for peer, error in peers.items():
                differences[family, peer].append(100 * (mean[family] / error - 1))
            wins = np.sum(errors[family] < np.minimum(errors["NN_TORCH"], errors["FASTAI"]))
            words += [f"{mean[family]:.6g}", f"{differences[family, 'better'][-1]:+.2f}", f"{wins}/{args.splits}"]
        print("\t".join(words), flush=True)
    for (family, peer), d in differences.items():
        print(f"{family} over {peer}: median {np.median(d):+.2f} %, lower on {np.sum(np.array(d) < 0)} of {len(d)}")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=os.path.join(here, "../../build/train_net"))
    parser.add_argument("--dir", default=os.path.join(here, "../../../shared/datasets"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, help="run so many, for the time alone")
    parser.add_argument("--family", nargs="+", default=["NN_TORCH", "FASTAI"])
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--autogluon", metavar="STATE")
    parser.add_argument("--rivals", metavar="STATE")
    parser.add_argument("--ours")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("tables", nargs="+")
    args = parser.parse_args()
    settings = dict(item.split("=") for item in args.set)
    index = table_index(args.dir)
    torch.set_num_threads(args.threads)
    if args.rivals:
        compare_rivals(args, settings, index)
        return
    if args.autogluon:
        compare_autogluon(args, settings, index)
        return
    print("table\tfamily\trows\tours\ttorch\tdiff_percent\ttorch_seeds_percent\tours_ms_epoch"
          "\ttorch_ms_epoch\tratio\tours_epochs\ttorch_epochs", flush=True)
    all_differences = {family: [] for family in args.family}
    for name in args.tables:
        x, y, cats, problem = load(args.dir, name, index, args.rows)
        n_classes = 0 if problem == "regression" else int(y.max()) + 1
        for family in args.family:
            twin = "NN_TORCH" if family == "REALMLP" else family
            ours, theirs, spent, epochs = [], [], [0.0, 0.0], [0, 0]
            for seed in range(args.seeds):
                part = split_parts(len(y), seed)
                test = y[part == 2]
                common = (x, y, cats, part, problem, n_classes)
                own = dict(settings)
                if args.epochs:
                    own["epochs" if family == "FASTAI" else "num_epochs"] = args.epochs
                p, s, e = run_ours(args.program, family, *common, own, seed, args.threads)
                ours.append(error_of(problem, test, p))
                spent[0] += s
                epochs[0] += e
                p, s, e = run_torch(twin, *common, seed, args.epochs)
                theirs.append(error_of(problem, test, p))
                spent[1] += s
                epochs[1] += e
            again = [error_of(problem, test, run_torch(twin, *common, 1000, args.epochs)[0])]
            difference = 100 * (np.mean(ours) / np.mean(theirs) - 1)
            noise = 100 * abs(again[0] / theirs[-1] - 1)
            all_differences[family].append(difference)
            mine, other = 1e3 * spent[0] / epochs[0], 1e3 * spent[1] / epochs[1]
            print(f"{name}\t{family}\t{len(y)}\t{np.mean(ours):.6g}\t{np.mean(theirs):.6g}"
                  f"\t{difference:+.2f}\t{noise:.2f}\t{mine:.1f}\t{other:.1f}\t{mine / other:.3f}"
                  f"\t{epochs[0] / args.seeds:.0f}\t{epochs[1] / args.seeds:.0f}", flush=True)
    for family, differences in all_differences.items():
        print(f"{family}: median difference {np.median(differences):+.2f} %, "
              f"median absolute {np.median(np.abs(differences)):.2f} %")


if __name__ == "__main__":
    main()
