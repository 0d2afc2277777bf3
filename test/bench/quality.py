#!/usr/bin/env python3
"""quality.py - ag_fit against AutoGluon and against single boosters: the same rows, metric, preset and time limit on the same machine.

    test/with_cluster test/bench/quality.py --datasets DIR [--peer PYTHON] [--systems ours,autogluon] [--preset medium] [--seconds 30]
        [--splits 3] [--state FILE] [--results FILE] [TABLE ...]

DIR has TABLE.csv.gz, INDEX.tsv (file, ..., label, problem type) and the loader `load`; without a TABLE, all of at most --most-rows rows are taken. PYTHON has
autogluon.tabular, lightgbm, catboost and xgboost. Systems: ours; autogluon, with its own choice of strategy, autogluon/sequential_local and autogluon/parallel_local
(of those that were run, the one that does better on a table counts); autogluon+v150, its newest preset for CPUs (best_v150 for best, high_v150 for high); single, the best
by validation of lightgbm, catboost and xgboost with their defaults, each stopped early by a fifth of the rows.

Each run is a line of the state file (build/bench/quality.tsv): system, table, split, preset, seconds, and what came of it; a run that is there isn't made again, so a long list
can be stopped and gone on with, and AutoGluon's lines be kept while ours are made anew (delete them). --results adds the report to a page of figures.
Training and test rows: 80 and 20 % by a hash of the row's number and the split's. The error is RMSE, 1 - AUC or log-loss, at least 1e-3; a tie is a mean difference within
one standard error of it. AutoGluon's clock starts after its imports; a run of it that fails is counted apart.
"""
import argparse, csv, datetime, gzip, hashlib, json, os, platform, statistics, subprocess, sys, tempfile, time

METRIC = {'binary': 'roc_auc', 'multiclass': 'log_loss', 'regression': 'root_mean_squared_error'}
PEER = r'''
import json, sys, time, os, warnings
warnings.filterwarnings('ignore')
train, test, label, problem, metric, preset, seconds, folder, strategy = sys.argv[1:]
import pandas as pd
from autogluon.tabular import TabularPredictor
import autogluon.tabular.models
train, test = pd.read_csv(train, low_memory=False), pd.read_csv(test, low_memory=False)
began = time.monotonic()
extra = {} if strategy == 'default' else {'ag_args_ensemble': {'fold_fitting_strategy': strategy}}
predictor = TabularPredictor(label=label, problem_type=problem, eval_metric=metric, path=folder, verbosity=0).fit(train, presets=preset, time_limit=float(seconds), **extra)
fit = time.monotonic() - began
began = time.monotonic()
scores = predictor.evaluate(test, silent=True)
print(json.dumps({'score': abs(scores[metric]), 'fit': fit, 'predict': time.monotonic() - began, 'size': predictor.disk_usage(), 'best': predictor.model_best}))
'''

SINGLE = r'''
import json, sys, time, warnings
warnings.filterwarnings('ignore')
train, test, label, problem, metric = sys.argv[1:]
import numpy as np, pandas as pd
import catboost, lightgbm, xgboost
train, test = pd.read_csv(train, low_memory=False), pd.read_csv(test, low_memory=False)
train = train[train[label].notna()]
test = test[test[label].notna()]
began = time.monotonic()
features = [c for c in train.columns if c != label]
texts = [c for c in features if not pd.api.types.is_numeric_dtype(train[c])]
both = pd.concat([train[features], test[features]])
for c in texts:
    both[c] = both[c].astype('string').fillna('').astype('category')
X, X_test = both.iloc[:len(train)], both.iloc[len(train):]
if problem == 'regression':
    y, y_test = train[label].astype(float), test[label].astype(float)
else:
    classes = {v: i for i, v in enumerate(sorted(train[label].unique(), key=str))}
    y, y_test = train[label].map(classes), test[label].map(classes)
    X_test, y_test = X_test[y_test.notna()], y_test[y_test.notna()].astype(int)
held = np.random.RandomState(0).rand(len(y)) < 0.2


def score(y, said):
    if problem == 'regression':
        return -float(np.sqrt(np.mean((y - said) ** 2)))
    if problem == 'multiclass':
        return float(np.mean(np.log(np.clip(said[np.arange(len(y)), y], 1e-15, 1))))
    rank = pd.Series(said[:, 1]).rank().to_numpy()
    n1 = int((y == 1).sum())
    return float((rank[np.asarray(y) == 1].sum() - n1 * (n1 + 1) / 2) / (n1 * (len(y) - n1)))


kind = 'Regressor' if problem == 'regression' else 'Classifier'
said = lambda model, X: model.predict(X) if problem == 'regression' else model.predict_proba(X)
words = X.copy()
for c in texts:
    words[c] = words[c].astype(str)
words_test = X_test.copy()
for c in texts:
    words_test[c] = words_test[c].astype(str)
fits = {
    'lightgbm': lambda: getattr(lightgbm, 'LGBM' + kind)(n_estimators=10000, verbosity=-1).fit(X[~held], y[~held], eval_set=[(X[held], y[held])], callbacks=[lightgbm.early_stopping(50, verbose=False)]),
    'xgboost': lambda: getattr(xgboost, 'XGB' + kind)(n_estimators=10000, enable_categorical=True, early_stopping_rounds=50).fit(X[~held], y[~held], eval_set=[(X[held], y[held])], verbose=False),
    'catboost': lambda: getattr(catboost, 'CatBoost' + kind)(iterations=10000, early_stopping_rounds=50, verbose=False, allow_writing_files=False, cat_features=texts).fit(words[~held], y[~held], eval_set=(words[held], y[held])),
}
best = None
for name, fit in fits.items():
    model = fit()
    rows, rows_test = (words, words_test) if name == 'catboost' else (X, X_test)
    value = score(np.asarray(y[held]), said(model, rows[held]))
    if best is None or value > best[0]:
        best = (value, name, model, rows_test)
fit_seconds = time.monotonic() - began
began = time.monotonic()
value = score(np.asarray(y_test), said(best[2], best[3]))
print(json.dumps({'score': abs(value), 'fit': fit_seconds, 'predict': time.monotonic() - began, 'size': 0, 'best': best[1]}))
'''


def rows_of(datasets, table):
    with gzip.open(os.path.join(datasets, table + '.csv.gz'), 'rt', newline='') as f:
        reader = csv.reader(f)
        return next(reader), list(reader)


def is_test(row, split):
    return hashlib.sha256(f'{split}/{row}'.encode()).digest()[0] < 51


def error_of(problem, score):
    return max(1 - score if problem == 'binary' else score, 1e-3)


def psql(*statements, **more):
    command = ['psql', '-XAtq', '-v', 'ON_ERROR_STOP=1'] + [x for s in statements for x in ('-c', s)]
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout.strip()


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def run_ours(args, table, label, problem, split):
    psql(f'DROP TABLE IF EXISTS whole, part_train, part_test', 'DROP EXTENSION IF EXISTS ag_pg CASCADE', 'CREATE EXTENSION ag_pg')
    sql = subprocess.run([os.path.join(args.datasets, 'load'), table], check=True, capture_output=True).stdout
    subprocess.run(['psql', '-Xq', '-v', 'ON_ERROR_STOP=1'], input=sql, check=True, capture_output=True)
    # the rows come in the file's order, which is what the split goes by
    n = int(psql(f'SELECT count(*) FROM {quoted(table)}'))
    tests = ','.join(str(i) for i in range(n) if is_test(i, split))
    psql_in = f'CREATE TEMP TABLE numbered AS SELECT row_number() OVER () - 1 AS ag_row, * FROM {quoted(table)};' \
              f'CREATE TEMP TABLE chosen AS SELECT unnest(ARRAY[{tests}]) AS ag_row;' \
              'CREATE TABLE part_test AS SELECT n.* FROM numbered n JOIN chosen USING (ag_row); CREATE TABLE part_train AS SELECT * FROM numbered n WHERE NOT EXISTS (SELECT FROM chosen c WHERE c.ag_row = n.ag_row);' \
              f'ALTER TABLE part_test DROP ag_row; ALTER TABLE part_train DROP ag_row; DROP TABLE {quoted(table)}; ANALYZE;'
    subprocess.run(['psql', '-Xq', '-v', 'ON_ERROR_STOP=1'], input=psql_in, text=True, check=True, capture_output=True)
    options = json.dumps({'name': 'm', 'presets': args.preset, 'time_limit': args.seconds, 'problem_type': problem, 'eval_metric': METRIC[problem], 'verbosity': 0})
    began = time.monotonic()
    psql(f"SELECT ag_fit('part_train', '{label.replace(chr(39), chr(39) * 2)}', '{options}')")
    fit = time.monotonic() - began
    score = float(psql(f"SELECT value FROM ag_evaluate('m', 'part_test') WHERE metric = '{METRIC[problem]}'"))
    call = 'ag_predict_proba' if problem != 'regression' else 'ag_predict'
    began = time.monotonic()
    psql(f"SELECT count({call}('m', t)) FROM part_test t")
    predict = time.monotonic() - began
    size = int(psql('SELECT sum(octet_length(data)) FROM ag_member_part'))
    return {'score': score, 'fit': fit, 'predict': predict, 'size': size, 'best': psql('SELECT best_model FROM ag_models')}


def run_peer(args, system, table, label, problem, split):
    header, rows = rows_of(args.datasets, table)
    name, _, strategy = system.partition('/')
    preset = args.preset + '_v150' if name.endswith('+v150') else args.preset
    with tempfile.TemporaryDirectory() as folder:
        for part, wanted in (('train', False), ('test', True)):
            with open(f'{folder}/{part}.csv', 'w', newline='') as f:
                writer = csv.writer(f)
                writer.writerow(header)
                writer.writerows(r for i, r in enumerate(rows) if is_test(i, split) == wanted)
        what = [f'{folder}/train.csv', f'{folder}/test.csv', label, problem, METRIC[problem]]
        if name == 'single':
            command = [args.peer, '-c', SINGLE, *what]
        else:
            command = [args.peer, '-c', PEER, *what, preset, str(args.seconds), f'{folder}/model', strategy or 'default']
        done = subprocess.run(command, capture_output=True, text=True, env={k: v for k, v in os.environ.items() if not k.startswith('PG')})
        if done.returncode != 0:
            return {'failed': done.stderr.strip().splitlines()[-1:] or ['?']}
        return json.loads(done.stdout.strip().splitlines()[-1])


def key_of(args, system, table, split):
    return '\t'.join((system, table, str(split), args.preset, f'{args.seconds:g}'))


def tables_of(args, index):
    return args.tables or [t for t, about in index.items() if int(about['rows']) <= args.most_rows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--datasets', required=True)
    parser.add_argument('--peer', '--autogluon', default=sys.executable, help='a Python with autogluon.tabular, or for single with the boosters')
    parser.add_argument('--systems', default='ours,autogluon')
    parser.add_argument('--preset', default='medium')
    parser.add_argument('--seconds', type=float, default=30)
    parser.add_argument('--splits', type=int, default=3)
    parser.add_argument('--most-rows', type=int, default=60000)
    parser.add_argument('--state', default='build/bench/quality.tsv')
    parser.add_argument('--results', help='a page that the report is added to')
    parser.add_argument('tables', nargs='*')
    args = parser.parse_intermixed_args()
    with open(os.path.join(args.datasets, 'INDEX.tsv'), newline='') as f:
        index = {row['file'].split('.')[0]: row for row in csv.DictReader(f, delimiter='\t')}
    os.makedirs(os.path.dirname(os.path.abspath(args.state)), exist_ok=True)
    state = {}
    if os.path.exists(args.state):
        for line in open(args.state):
            key, value = line.rstrip('\n').rsplit('\t', 1)
            state[key] = json.loads(value)
    for table in tables_of(args, index):
        label, problem = index[table]['label'], index[table]['problem_type']
        for split in range(args.splits):
            for system in args.systems.split(','):
                key = key_of(args, system, table, split)
                if key in state:
                    continue
                try:
                    result = run_ours(args, table, label, problem, split) if system == 'ours' else run_peer(args, system, table, label, problem, split)
                except subprocess.CalledProcessError as e:
                    result = {'failed': (e.stderr or str(e)).strip().splitlines()[:1]}
                state[key] = result
                with open(args.state, 'a') as f:
                    f.write(f'{key}\t{json.dumps(result)}\n')
                print(key, result, file=sys.stderr)
    text = ''.join(report(args, index, state, peer) for peer in ('autogluon', 'autogluon+v150', 'single') if any(k.split('/')[0].split('\t')[0] == peer for k in state))
    print(text)
    if args.results:
        with open(args.results, 'a') as f:
            f.write(f'\n### {datetime.date.today()}, {os.cpu_count()} CPUs of {platform.processor() or platform.machine()}\n\n    test/bench/quality.py --preset {args.preset} --seconds {args.seconds:g} --splits {args.splits}\n\n{text}')


def mean(values):
    return sum(values) / len(values)


def done(args, state, system, table):
    """What came of the system's splits: {split: result}, and how many failed."""
    runs = {split: state.get(key_of(args, system, table, split)) for split in range(args.splits)}
    runs = {split: result for split, result in runs.items() if result is not None}
    return {split: result for split, result in runs.items() if 'failed' not in result}, sum('failed' in result for result in runs.values())


def better(args, state, peer, table, problem):
    """Of a peer's strategies the one with the least mean error on that table."""
    found = [done(args, state, system, table) for system in (peer, peer + '/sequential_local', peer + '/parallel_local')]
    found.sort(key=lambda runs: (-len(runs[0]), mean([error_of(problem, r['score']) for r in runs[0].values()]) if runs[0] else 0))
    return found[0][0], max(runs[1] for runs in found)


def report(args, index, state, peer):
    lines = [f'Against {peer}: `{args.preset}`, {args.seconds:g} s.', '', '| table | splits | error, ours | its | difference, % | | fit, s | its | rows/s | its | MB | its |', '|---|---|---|---|---|---|---|---|---|---|---|---|']
    outcomes, differences, n_failed, late, n_ours = {'win': 0, 'tie': 0, 'loss': 0}, [], 0, 0, 0
    for table in tables_of(args, index):
        problem = index[table]['problem_type']
        (ours, failed), (its, its_failed) = done(args, state, 'ours', table), better(args, state, peer, table, problem)
        n_failed += its_failed
        n_ours += len(ours)
        late += sum(r['fit'] > args.seconds + max(1, args.seconds * 0.05) for r in ours.values())
        splits = sorted(set(ours) & set(its))
        if failed:
            lines.append(f'| {table} | | failed | | | | | | | | | |')
        if not splits:
            continue
        a, b = ([error_of(problem, runs[s]['score']) for s in splits] for runs in (ours, its))
        gaps = [(x - y) / y * 100 for x, y in zip(a, b)]
        error = statistics.stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else 0.0
        outcome = 'tie' if abs(mean(gaps)) <= error else 'win' if mean(gaps) < 0 else 'loss'
        outcomes[outcome] += 1
        differences.append(mean(gaps))
        _, rows = rows_of(args.datasets, table)
        n_test = sum(is_test(i, 0) for i in range(len(rows)))
        col = lambda runs, what: mean([runs[s][what] for s in splits])
        lines.append(f"| {table} | {len(splits)} | {mean(a):.5g} | {mean(b):.5g} | {mean(gaps):+.2f} ± {error:.2f} | {outcome} | {col(ours, 'fit'):.1f} | {col(its, 'fit'):.1f} | "
                     f"{n_test / col(ours, 'predict'):.0f} | {n_test / col(its, 'predict'):.0f} | {col(ours, 'size') / 1e6:.1f} | {col(its, 'size') / 1e6:.1f} |")
    if differences:
        rate = (outcomes['win'] + outcomes['tie'] / 2) / len(differences) * 100
        lines += ['', f"{len(differences)} tables: {outcomes['win']} wins, {outcomes['tie']} ties, {outcomes['loss']} losses, win rate {rate:.0f} %; median difference {statistics.median(differences):+.2f} %; "
                  f"runs of it that failed: {n_failed}; our fits that ended later than promised: {late} of {n_ours}.", '']
    return '\n'.join(lines) + '\n' if differences else ''


if __name__ == '__main__':
    main()
