#!/usr/bin/env python3
"""How right ag_jobs is about what remains of a fit.

    test/with_cluster test/bench/eta.py --datasets DIR [--at-once N] [--trace FILE] TABLE:LABEL:OPTIONS ...

Each fit runs in a session of its own and is looked at twice a second. Then, of the moments after the first tenth of what it took in the end: the share at
which `remaining` was within a factor of two of the truth (or a second of it, as the last moments of any fit are), the worst of them, the same for
`percent` read as a clock (elapsed / percent against the whole), and the longest silence in a row.
"""
import argparse, json, subprocess, threading, time


def psql(sql, **kwargs):
    return subprocess.run(['psql', '-XAtq', '-F', '\t', '-d', 'postgres', '-v', 'ON_ERROR_STOP=1', '-c', sql], capture_output=True, text=True, **kwargs)


def one(name, table, label, options, out):
    options = dict(json.loads(options or '{}'), name=name, verbosity=0)
    options.setdefault('time_limit', 60)
    options.setdefault('num_cpus', 1)
    done, samples, began = threading.Event(), [], time.monotonic()

    def look():
        while not done.wait(0.5):
            rows = psql(f"SELECT elapsed, percent, remaining, phase FROM ag_jobs WHERE model = '{name}' AND pid IS NOT NULL").stdout.splitlines()
            if rows:
                samples.append(rows[0].split('\t'))

    watcher = threading.Thread(target=look)
    watcher.start()
    fit = psql(f"SELECT ag_fit('{table}', '{label}', $${json.dumps(options)}$$)")
    took = time.monotonic() - began
    done.set()
    watcher.join()
    out[name] = (table, options, took, samples, fit.stderr.strip())


def within(estimate, truth):
    return truth / 2 <= estimate <= truth * 2 or abs(estimate - truth) <= 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--datasets', required=True)
    parser.add_argument('--at-once', type=int, default=1)
    parser.add_argument('--trace')
    parser.add_argument('fits', nargs='+')
    args = parser.parse_args()
    psql('CREATE EXTENSION ag_pg')
    fits = [fit.split(':', 2) for fit in args.fits]
    tables = sorted({fit[0] for fit in fits})
    load = subprocess.run([f'{args.datasets}/load', *tables], capture_output=True, text=True, check=True).stdout
    subprocess.run(['psql', '-Xq', '-d', 'postgres'], input=load, text=True, check=True, stdout=subprocess.DEVNULL)
    out, waiting = {}, list(enumerate(fits))
    while waiting:
        batch, waiting = waiting[:args.at_once], waiting[args.at_once:]
        threads = [threading.Thread(target=one, args=(f'f{i}', *fit, out)) for i, fit in batch]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    trace = open(args.trace, 'w') if args.trace else None
    print('| table | options | took, s | moments | known | remaining within 2x | worst | percent within 2x | worst |\n|---|---|---|---|---|---|---|---|---|')
    for name in sorted(out):
        table, options, took, samples, error = out[name]
        shown = json.dumps({k: v for k, v in options.items() if k not in ('name', 'verbosity')})
        rows = [(float(e), p, r) for e, p, r, _ in samples if float(e) >= took / 10]
        if trace:
            for sample in samples:
                print(name, table, f'{took:.1f}', *sample, sep='\t', file=trace)
        known = [(e, float(p), float(r), max(took - e, 0.0)) for e, p, r in rows if p and r]
        good = [within(r, t) for _, _, r, t in known]
        clock = [100 * e / p / took if p > 0 else 9.99 for e, p, _, _ in known]
        worst = max((max(r, 1) / max(t, 1) if r > t else max(t, 1) / max(r, 1) for _, _, r, t in known), default=0)
        worst_clock = max((max(c, 1 / c) for c in clock), default=0)
        n = max(len(known), 1)
        print(f'| {table} | {shown} | {took:.1f} | {len(rows)} | {len(known)} | {100 * sum(good) / n:.0f} % | {worst:.1f} | {100 * sum(0.5 <= c <= 2 for c in clock) / n:.0f} % | {worst_clock:.1f} |'
              + (f' {error}' if error else ''))


if __name__ == '__main__':
    main()
