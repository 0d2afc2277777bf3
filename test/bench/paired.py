"""Paired comparisons of two programs over tables: folds that both see, and what their errors say.

Of each table both programs get the same parts of the same repeated folds, and the other one a second seed, which
tells how far luck alone moves it. A table's difference is that of the mean errors, relative; its significance is by the corrected
resampled t-test (Nadeau and Bengio 2003, "Inference for the generalization error", section 3), since folds of
one table share most of their training rows; over all tables p-values are Holm's (1979).
"""
import numpy as np
from scipy import stats
from sklearn.model_selection import KFold, StratifiedKFold

LEVEL = 0.05


def parts_of(y, problem, seed, n_folds=5, valid_share=0.125):
    """Yields for each fold part[n]: 0 train, 1 stop by, 2 test; valid_share is of the rows that aren't tested on."""
    kind = KFold if problem == "regression" or np.bincount(y.astype(int)).min() < n_folds else StratifiedKFold
    folds = kind(n_folds, shuffle=True, random_state=seed)
    for number, (train, test) in enumerate(folds.split(np.zeros(len(y)), y)):
        part = np.zeros(len(y))
        part[test] = 2
        n_valid = int(round(valid_share * len(train)))
        if n_valid:
            part[np.random.RandomState(1000 * seed + number).permutation(train)[:n_valid]] = 1
        yield part


def corrected_p(differences, test_share):
    """Two-sided p of paired differences over repeated folds; test_share: tested rows over trained-on rows."""
    d = np.asarray(differences, dtype=float)
    n = len(d)
    if n < 2 or not np.any(d != d[0]):
        return 1.0 if n < 2 or d[0] == 0 else 0.0
    t = d.mean() / np.sqrt(d.var(ddof=1) * (1.0 / n + test_share))
    return float(2 * stats.t.sf(abs(t), n - 1))


def holm(p_values):
    """Adjusted p-values, in the order given."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    highest = 0.0
    for place, at in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - place) * p[at]))
        adjusted[at] = highest
    return adjusted


class Comparison:
    """Collects tables and tells the whole; errors are lists over folds and seeds, in the same order."""

    def __init__(self, peer):
        self.peer = peer
        self.tables = []

    def add(self, name, ours, theirs, again, ours_s, theirs_s, test_share=0.25):
        ours, theirs, again = (np.asarray(e, dtype=float) for e in (ours, theirs, again))
        row = {
            "table": name, "ours": ours.mean(), "theirs": theirs.mean(),
            "difference": 100 * (ours.mean() / theirs.mean() - 1),
            # of a whole repetition's mean, as the difference is: single folds would exaggerate it
            "luck": 100 * abs(again.mean() / theirs.mean() - 1),
            "luck_fold": 100 * np.mean(np.abs(again / theirs - 1)),
            "p": corrected_p(ours - theirs, test_share),
            "ours_s": ours_s, "theirs_s": theirs_s,
        }
        self.tables.append(row)
        return row

    def header(self):
        return (f"| table | ours | {self.peer} | difference % | its seeds %, mean (a fold) | p | Holm's p "
                f"| ours, s | its, s | ratio |\n|---|---|---|---|---|---|---|---|---|---|")

    def line(self, row, adjusted=None):
        said = "" if adjusted is None else f"{adjusted:.3f}" + (
            " worse" if adjusted < LEVEL and row["difference"] > 0 else
            " better" if adjusted < LEVEL else "")
        return (f"| {row['table']} | {row['ours']:.5g} | {row['theirs']:.5g} | {row['difference']:+.2f} "
                f"| {row['luck']:.2f} ({row['luck_fold']:.2f}) | {row['p']:.3f} | {said} "
                f"| {row['ours_s']:.2f} | {row['theirs_s']:.2f} | {row['ours_s'] / row['theirs_s']:.3f} |")

    def report(self):
        """The table, and below it the medians."""
        adjusted = holm([row["p"] for row in self.tables])
        lines = [self.header()] + [self.line(r, a) for r, a in zip(self.tables, adjusted)]
        d = np.array([row["difference"] for row in self.tables])
        luck = np.array([row["luck"] for row in self.tables])
        folds = np.array([row["luck_fold"] for row in self.tables])
        worse = [r["table"] for r, a in zip(self.tables, adjusted) if a < LEVEL and r["difference"] > 0]
        better = [r["table"] for r, a in zip(self.tables, adjusted) if a < LEVEL and r["difference"] < 0]
        lines += ["",
                  f"Median difference {np.median(d):+.2f} %, median absolute {np.median(np.abs(d)):.2f} %; "
                  f"{self.peer}'s own seeds {np.median(luck):.2f} % (of one fold {np.median(folds):.2f} %). "
                  f"Median ratio of time {np.median([r['ours_s'] / r['theirs_s'] for r in self.tables]):.3f}.",
                  f"Significantly worse: {', '.join(worse) or 'none'}; better: {', '.join(better) or 'none'}."]
        return "\n".join(lines)
