#!/usr/bin/env python3
"""quality.py - ag_fit against AutoGluon: the same rows, metric, preset and time limit on the same machine.

    test/with_cluster test/bench/quality.py --datasets DIR --autogluon PYTHON [--preset medium] [--seconds 30] [--splits 3] [--state FILE] TABLE ...

DIR has TABLE.csv.gz, INDEX.tsv (file, ..., label, problem type) and the loader `load`; PYTHON has autogluon.tabular. Each run is a line of the state file (build/bench/quality.tsv), and
a run that is there isn't made again: so a long list can be stopped and gone on with, and AutoGluon's lines be kept while ours are made anew (delete them).
Training and test rows: 80 and 20 % by a hash of the row's number and the split's. The error is RMSE, 1 - AUC (floor 1e-3) or log-loss; a tie is a difference of means within
one standard error. AutoGluon's clock starts after its imports; a run of it that fails is counted apart.
"""
import argparse, csv, gzip, hashlib, json, os, statistics, subprocess, sys, tempfile, time

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


def rows_of(datasets, table):
    with gzip.open(os.path.join(datasets, table + '.csv.gz'), 'rt', newline='') as f:
        reader = csv.reader(f)
        return next(reader), list(reader)


def is_test(row, split):
    return hashlib.sha256(f'{split}/{row}'.encode()).digest()[0] < 51


def error_of(problem, score):
    return max(1 - score, 1e-3) if problem == 'binary' else score


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


def run_peer(args, table, label, problem, split):
    header, rows = rows_of(args.datasets, table)
    with tempfile.TemporaryDirectory() as folder:
        for name, wanted in (('train', False), ('test', True)):
            with open(f'{folder}/{name}.csv', 'w', newline='') as f:
                writer = csv.writer(f)
                writer.writerow(header)
                writer.writerows(r for i, r in enumerate(rows) if is_test(i, split) == wanted)
        done = subprocess.run([args.autogluon, '-c', PEER, f'{folder}/train.csv', f'{folder}/test.csv', label, problem, METRIC[problem], args.preset + '_quality', str(args.seconds), f'{folder}/model', args.strategy],
                              capture_output=True, text=True, env={k: v for k, v in os.environ.items() if not k.startswith('PG')})
        if done.returncode != 0:
            return {'failed': done.stderr.strip().splitlines()[-1:] or ['?']}
        return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--datasets', required=True)
    parser.add_argument('--autogluon', help='a Python with autogluon.tabular; without, only ours are run')
    parser.add_argument('--preset', default='medium')
    parser.add_argument('--seconds', type=float, default=30)
    parser.add_argument('--splits', type=int, default=3)
    parser.add_argument('--strategy', default='default', choices=['default', 'sequential_local', 'parallel_local'], help="AutoGluon's fold_fitting_strategy")
    parser.add_argument('--state', default='build/bench/quality.tsv')
    parser.add_argument('tables', nargs='+')
    args = parser.parse_args()
    with open(os.path.join(args.datasets, 'INDEX.tsv'), newline='') as f:
        index = {row['file'].split('.')[0]: row for row in csv.DictReader(f, delimiter='\t')}
    os.makedirs(os.path.dirname(args.state), exist_ok=True)
    state = {}
    if os.path.exists(args.state):
        for line in open(args.state):
            key, value = line.rstrip('\n').rsplit('\t', 1)
            state[key] = json.loads(value)
    for table in args.tables:
        label, problem = index[table]['label'], index[table]['problem_type']
        for split in range(args.splits):
            for system, run in (('ours', run_ours), ('autogluon', run_peer)):
                key = '\t'.join((system, table, str(split), args.preset, f'{args.seconds:g}'))
                if key in state or (system == 'autogluon' and not args.autogluon):
                    continue
                try:
                    result = run(args, table, label, problem, split)
                except subprocess.CalledProcessError as e:
                    result = {'failed': (e.stderr or str(e)).strip().splitlines()[:1]}
                state[key] = result
                with open(args.state, 'a') as f:
                    f.write(f'{key}\t{json.dumps(result)}\n')
                print(key, result, file=sys.stderr)
    report(args, index, state)


def mean(values):
    return sum(values) / len(values)


def report(args, index, state):
    print('| table | error, ours | AutoGluon | difference, % | | fit, s | its | rows/s | its | MB | its |\n|---|---|---|---|---|---|---|---|---|---|---|')
    outcomes, differences, late = {'win': 0, 'tie': 0, 'loss': 0, 'its failures': 0}, [], 0
    for table in args.tables:
        problem = index[table]['problem_type']
        pairs = []
        for split in range(args.splits):
            ours, its = (state.get('\t'.join((s, table, str(split), args.preset, f'{args.seconds:g}')), {'failed': ['not run']}) for s in ('ours', 'autogluon'))
            late += ours.get('fit', 0) > args.seconds + max(1, args.seconds * 0.05)
            if 'failed' in its and 'failed' not in ours and args.autogluon:
                outcomes['its failures'] += 1
            if 'failed' not in its and 'failed' not in ours:
                pairs.append((ours, its))
        if not pairs:
            print(f'| {table} | – | – | | not compared | | | | | | |')
            continue
        a, b = ([error_of(problem, p[i]['score']) for p in pairs] for i in (0, 1))
        gaps = [(x - y) / y * 100 for x, y in zip(a, b)]
        error = statistics.stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else 0.0
        outcome = 'tie' if abs(mean(gaps)) <= error else 'win' if mean(gaps) < 0 else 'loss'
        outcomes[outcome] += 1
        differences.append(mean(gaps))
        _, rows = rows_of(args.datasets, table)
        n_test = sum(is_test(i, 0) for i in range(len(rows)))
        col = lambda i, what: mean([p[i][what] for p in pairs])
        print(f"| {table} | {mean(a):.5g} | {mean(b):.5g} | {mean(gaps):+.2f} ± {error:.2f} | {outcome} | {col(0, 'fit'):.1f} | {col(1, 'fit'):.1f} | {n_test / col(0, 'predict'):.0f} | {n_test / col(1, 'predict'):.0f} | {col(0, 'size') / 1e6:.1f} | {col(1, 'size') / 1e6:.1f} |")
    print(f"\n{outcomes}; median difference {statistics.median(differences) if differences else float('nan'):+.2f} %; {late} of our fits ended later than promised")


if __name__ == '__main__':
    main()
