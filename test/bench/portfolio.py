#!/usr/bin/env python3
"""portfolio.py - which configurations, in which order: fits them all once on development tables, then searches.

    test/bench/portfolio.py run --datasets DIR --state DIR [--rows 8000] [--folds 8] TABLE ...
    test/bench/portfolio.py search --state DIR [--length 12]          (a Python with numpy)
    test/bench/portfolio.py try --state DIR NAME NAME ...

run: build/bench/portfolio (make build/bench/portfolio) fits the configurations of portfolio.txt, and leaves in DIR/TABLE what each says of rows it hasn't seen, and the CPU seconds it
took. What is there isn't made again. search: builds the order one by one, each time the configuration after which the ensembles of all tables are best, a percent of error against a
CPU second's worth; an ensemble is chosen as a fit does, and judged on rows that neither models nor weights have seen. Then each table is left out in turn: what the order that the
others lead to is worth on it, against all configurations that there are. try: the same for an order that is given. Both for bags, and for single models chosen by one fold.
"""
import argparse, csv, glob, importlib.machinery, importlib.util, os, struct, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
METRIC = {'binary': 'roc_auc', 'multiclass': 'log_loss', 'regression': 'root_mean_squared_error'}
STEPS = 15  # of greed
MOST_FIRST, FIRST_ERROR = 3, 1.15  # as in src/engine/model/ensemble.c
COST = 0.0035  # of error that e times the CPU seconds may be worth
BUDGETS = (4, 15, 60, 240)  # CPU seconds of a whole fit


# --- run

def loader(datasets):
    spec = importlib.util.spec_from_loader('load', importlib.machinery.SourceFileLoader('load', os.path.join(datasets, 'load')))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table_write(datasets, about, path, most):
    """The table as portfolio.c reads it: an evenly spread part of a large one, without the columns that leak."""
    import gzip
    load = loader(datasets)
    with gzip.open(os.path.join(datasets, about['file'] + '.gz'), 'rt', newline='', encoding='utf-8') as f:
        header, *rows = csv.reader(f)
    types = [load.kind(column) for column in zip(*rows)]
    if len(rows) > most:
        rows = [rows[i * len(rows) // most] for i in range(most)]
    dropped = {c.strip() for c in about['drop_columns'].split(';')}
    keep = [i for i, c in enumerate(header) if c not in dropped]
    with open(path, 'w', encoding='utf-8') as f:
        for values in (header, types, ['label' if c == about['label'] else 'feature' for c in header]):
            f.write('\t'.join(values[i] for i in keep) + '\n')
        for row in rows:
            f.write('\t'.join(load.field(row[i], types[i]) for i in keep) + '\n')


def run(args):
    with open(os.path.join(args.datasets, 'INDEX.tsv'), newline='') as f:
        index = {row['file'].split('.')[0]: row for row in csv.DictReader(f, delimiter='\t')}
    for table in args.names:
        folder = os.path.join(args.state, table)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, 'table.tsv')
        problem = index[table]['problem_type']
        if not os.path.exists(path):
            table_write(args.datasets, index[table], path, args.rows)
            with open(os.path.join(folder, 'problem'), 'w') as f:
                f.write(problem)
        subprocess.run([args.program, path, args.configurations, folder, problem, METRIC[problem], str(args.folds)], check=False)


# --- what was fitted

class Config:
    """What one configuration says: oof [scored rows, width], held [held rows, width] by the bag, first by its first child; cpu of one child."""


class Table:
    def __init__(self, folder):
        import numpy as np
        self.name, self.problem = os.path.basename(folder), open(os.path.join(folder, 'problem')).read()
        data = open(os.path.join(folder, 'labels.bin'), 'rb').read()
        n, m = struct.unpack('2q', data[:16])
        values = np.frombuffer(data[16:], 'f8')
        kind = float if self.problem == 'regression' else int
        self.y, self.fold, self.y_held = values[:n].astype(kind), values[n:2 * n].astype(int), values[2 * n:].astype(kind)
        self.configs, self.cache = {}, {}
        for path in glob.glob(os.path.join(folder, '*.bin')):
            config = self.config_read(np, path, n, m)
            if config is not None:
                self.configs[os.path.basename(path)[:-4]] = config

    def config_read(self, np, path, n, m):
        data = open(path, 'rb').read()
        if os.path.basename(path) == 'labels.bin' or len(data) < 32:
            return None  # couldn't be fitted
        _, _, width, children = struct.unpack('4q', data[:32])
        about = np.frombuffer(data[32:32 + 24 * children], 'f8').reshape(children, 3)
        values = np.frombuffer(data[32 + 24 * children:], 'f4').astype('f8')
        config = Config()
        parts = values[:n * width].reshape(n, width), values[n * width:(n + m) * width].reshape(m, width), values[(n + m) * width:].reshape(m, width)
        config.oof, config.held, config.first = (p[:, 1:] if width == 2 else p for p in parts)
        config.cpu = float(about[:, 0].mean())
        return config


def errors(problem, y, p):
    """Of predictions [..., rows, width]: RMSE, 1 - AUC or log-loss, at least 1e-3."""
    import numpy as np
    if problem == 'regression':
        return np.sqrt(((p[..., 0] - y) ** 2).mean(-1))
    if problem == 'binary':
        ys, n1 = y[np.argsort(p[..., 0], axis=-1, kind='stable')], y.sum()
        return np.maximum(1 - ((ys * np.arange(1, len(y) + 1)).sum(-1) - n1 * (n1 + 1) / 2) / (n1 * (len(y) - n1)), 1e-3)
    own = np.take_along_axis(p, np.broadcast_to(y[:, None], p.shape[:-1] + (1,)), -1)[..., 0]
    return np.maximum(-np.log(np.clip(own, 1e-15, 1)).mean(-1), 1e-3)


def select(problem, y, predictions):
    """Weights of predictions [candidates, rows, width], as ag_ensemble_select chooses them."""
    import numpy as np
    alone = errors(problem, y, predictions)
    n_first = max(1, min(MOST_FIRST, len(predictions) // 3, int((alone <= alone.min() * FIRST_ERROR).sum())))
    picks = list(np.argsort(alone, kind='stable')[:n_first])
    total = predictions[picks].sum(0)
    best, n_best = errors(problem, y, (total / n_first)[None])[0], n_first
    while len(picks) < STEPS:
        e = errors(problem, y, (total + predictions) / (len(picks) + 1))
        j = int(np.argmin(e))
        total = total + predictions[j]
        picks.append(j)
        if e[j] < best - 1e-6:
            best, n_best = e[j], len(picks)
    return np.bincount(picks[:n_best], minlength=len(predictions)) / n_best


def worth(table, names, bags):
    """Error of the ensemble of these on the rows held back."""
    import numpy as np
    names = [n for n in names if n in table.configs]
    key = (frozenset(names), bags)
    if key not in table.cache:
        rows = table.fold >= 0 if bags else table.fold == 0
        weights = select(table.problem, table.y[rows], np.stack([table.configs[n].oof[rows] for n in names]))
        mean = sum(w * (table.configs[n].held if bags else table.configs[n].first) for w, n in zip(weights, names))
        table.cache[key] = float(errors(table.problem, table.y_held, mean))
    return table.cache[key]


# --- search

def forward(tables, names, bags, length):
    import numpy as np
    order = []
    while len(order) < min(length, len(names)):
        def cost(name):
            error = np.mean([np.log(worth(t, order + [name], bags)) for t in tables])
            return error + COST * np.mean([np.log(t.configs[name].cpu + 0.03) for t in tables if name in t.configs])
        order.append(min((n for n in names if n not in order), key=cost))
    return order


def within(table, order, bags, folds, seconds):
    """Those of the order that fit into the CPU seconds, one after the other; at least the first."""
    chosen = []
    for name in order:
        cost = table.configs[name].cpu * (folds if bags else 1) if name in table.configs else seconds + 1
        if cost <= seconds or not chosen:
            chosen.append(name)
            seconds -= cost
    return chosen


def judge(tables, order_of, bags, folds, everything):
    """Percent of error above all configurations together, per budget; order_of(table)."""
    import numpy as np
    for seconds in BUDGETS:
        gaps = [100 * np.log(worth(t, within(t, order_of(t), bags, folds, seconds), bags) / worth(t, everything, bags)) for t in tables]
        print(f'  {seconds:4d} CPU s: mean {np.mean(gaps):+.2f} %, median {np.median(gaps):+.2f} %, worst {max(gaps):+.1f} % ({tables[int(np.argmax(gaps))].name})', flush=True)


def search(args):
    tables = [Table(os.path.dirname(p)) for p in sorted(glob.glob(os.path.join(args.state, '*', 'labels.bin')))]
    tables = [t for t in tables if len(t.configs) >= args.least]
    everywhere = sorted(set.intersection(*(set(t.configs) for t in tables)))
    names = sorted({n for t in tables for n in t.configs})
    print(f"{len(tables)} tables: {' '.join(t.name for t in tables)}\n{len(everywhere)} configurations fitted on all of them")
    for bags in (True, False):
        print('bags' if bags else 'single models')
        if args.verb == 'try':
            judge(tables, lambda t: args.names, bags, args.folds, names)
            continue
        print('  ' + ' '.join(forward(tables, everywhere, bags, args.length)), flush=True)
        print('  each table by the order of the others:')
        orders = {t.name: forward([o for o in tables if o is not t], everywhere, bags, args.length) for t in tables}
        judge(tables, lambda t: orders[t.name], bags, args.folds, names)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('verb', choices=['run', 'search', 'try'])
    parser.add_argument('--datasets')
    parser.add_argument('--state', required=True)
    parser.add_argument('--program', default='build/bench/portfolio')
    parser.add_argument('--configurations', default=os.path.join(HERE, 'portfolio.txt'))
    parser.add_argument('--rows', type=int, default=8000)
    parser.add_argument('--folds', type=int, default=8)
    parser.add_argument('--length', type=int, default=12)
    parser.add_argument('--least', type=int, default=12, help='configurations that a table must have to count')
    parser.add_argument('names', nargs='*', help='tables, or an order')
    args = parser.parse_intermixed_args()
    run(args) if args.verb == 'run' else search(args)


if __name__ == '__main__':
    main()
