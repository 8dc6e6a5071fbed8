"""Computes what a report must say of tables of whole numbers, by SciPy and by exact enumeration.

Standard input has a list of tables, standard output an object of numbers for each of them.
"""

import collections
import fractions
import functools
import itertools
import json
import math
import sys

import numpy
import scipy
from scipy import stats

F = fractions.Fraction
EXACT = {2: 1000, 3: 50, 4: 15, 5: 6, 6: 3, 7: 2, 8: 2}  # datasets up to which Friedman's p is exact


def observations(d, row, lower):
    """The exact values of a row, one for each division of the data; None where a run is missing."""
    runs = [[None if c is None else (F(n - c, n) if lower else F(c, n)) for c, n in zip(repeat, d["sizes"])] for repeat in row]
    if not d["same"]:
        return [v for repeat in runs for v in repeat]
    return [None if None in fold else sum(fold) / len(fold) for fold in zip(*runs)]


def whole(values):
    scale = math.lcm(*(v.denominator for v in values))
    return [int(v * scale) for v in values], scale


def holm(p):
    order, adjusted, most = sorted(range(len(p)), key=lambda i: p[i]), [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        most = max(most, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = most
    return adjusted


def t_test(d, factor):
    """The two-sided p of a t-test whose mean has the variance of the differences times factor."""
    n, mean = len(d), sum(d) / len(d)
    variance = sum((v - mean) ** 2 for v in d) / (n - 1)
    if variance == 0:
        return 1.0 if mean == 0 else 0.0
    t = math.sqrt(mean**2 / (variance * factor))
    return 2 * stats.t.sf(t, n - 1)


def wilcoxon(d, by_scipy):
    d = whole(d)[0]
    if not any(d):
        return 1.0
    some = [v for v in d if v]
    tied = len(some) < len(d) or len({abs(v) for v in some}) < len(some)
    if tied and len(d) <= 13 and not by_scipy:
        return signs(tuple(sorted(some)))
    return float(stats.wilcoxon(numpy.array(d, dtype=float)).pvalue)


@functools.cache
def signs(d):
    """The p of Wilcoxon's test by all choices of signs, which SciPy lists as well, but in a thousand times the time."""
    ranks = [int(2 * r) for r in stats.rankdata([abs(v) for v in d])]
    plus = sum(r for r, v in zip(ranks, d) if v > 0)
    ways = collections.Counter({0: 1})
    for r in ranks:
        ways += collections.Counter({total + r: n for total, n in ways.items()})
    low = sum(n for total, n in ways.items() if total <= min(plus, sum(ranks) - plus))
    return min(1.0, 2 * low / 2 ** len(d))


def paired_t(d):
    if len(set(d)) == 1:
        return t_test(d, F(1, len(d)))
    return float(stats.ttest_1samp(numpy.array(whole(d)[0], dtype=float), 0).pvalue)


@functools.cache
def exact_friedman(ranks):
    """P and the least P by all permutations of twice the ranks of each dataset."""
    k = len(ranks[0])
    if k == 2:
        wins = [r for r in ranks if r[0] != r[1]]
        if not wins:
            return 1.0, 1.0
        first = sum(r[0] < r[1] for r in wins)
        return stats.binomtest(first, len(wins)).pvalue, stats.binomtest(0, len(wins)).pvalue
    squares = lambda sums: sum(v * v for v in sums)
    have = squares([sum(column) for column in zip(*ranks)])
    ways = collections.Counter({tuple(sorted(ranks[0])): 1})
    for row in ranks[1:]:
        step = collections.Counter()
        for order in set(itertools.permutations(row)):
            for sums, n in ways.items():
                step[tuple(sorted(a + b for a, b in zip(sums, order)))] += n  # whose sum is which does not matter
        ways = step
    if len({squares(sums) for sums in ways}) == 1:
        return 1.0, 1.0
    total, most = sum(ways.values()), max(map(squares, ways))
    return (
        float(F(sum(n for sums, n in ways.items() if squares(sums) >= have), total)),
        float(F(sum(n for sums, n in ways.items() if squares(sums) == most), total)),
    )


@functools.cache
def quantile(k, level):
    return stats.studentized_range.ppf(1 - level, k, numpy.inf)


def difference(k, n, level):
    return quantile(k, level) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n))


def dataset(out, name, d, same, lower, by_scipy):
    """The numbers of one measure on one dataset; returns the exact means of the rows, None where runs are missing."""
    values = [observations(d, row, lower) for row in d["rows"]]
    means = []
    for i, row in enumerate(values):
        have = [v for v in row if v is not None]
        if have:
            mean = sum(have) / len(have)
            out[f"{name}/{i}/mean"] = float(mean)
            out[f"{name}/{i}/deviation"] = math.sqrt(sum((v - mean) ** 2 for v in have) / len(have)) if len(have) > 1 else None
        means.append(sum(row) / len(row) if None not in row else None)
    compared = [i for i in range(len(values)) if means[i] is not None and same[i] < 0]
    sign = 1 if lower else -1
    best = sorted({sign * means[i] for i in compared})
    for i in compared:
        out[f"{name}/{i}/place"] = {0: 1, 1: 2}.get(best.index(sign * means[i]), 0)
    if not compared:
        return means
    first = next(i for i in compared if out[f"{name}/{i}/place"] == 1)
    done = [n for repeat in d["rows"][first] for c, n in zip(repeat, d["sizes"]) if c is not None]
    ratio = F(sum(done), sum(d["size"] - n for n in done))
    tests = collections.defaultdict(dict)
    for i in compared:
        if i == first or len(values[i]) < 2:
            continue
        diff = [a - b for a, b in zip(values[i], values[first])]
        tests["corrected"][i] = t_test(diff, F(1, len(diff)) + ratio)
        tests["t"][i] = paired_t(diff)
        tests["wilcoxon"][i] = wilcoxon(diff, by_scipy)
        mean = sum(diff) / len(diff)
        variance = sum((v - mean) ** 2 for v in diff) / (len(diff) - 1)
        effect = 0.0 if mean == 0 else None
        if mean != 0 and variance != 0:
            effect = math.copysign(math.sqrt(mean**2 / variance), mean)
        out[f"{name}/{i}/effect"] = effect
    for what, p in tests.items():
        for i, adjusted in zip(p, holm(list(p.values()))):
            out[f"{name}/{i}/{what}"], out[f"{name}/{i}/{what}_holm"] = float(p[i]), float(adjusted)
    return means


def ranking(out, name, by_dataset, same, lower, level):
    rows = [i for i in range(len(same)) if same[i] < 0 and f"{i}" in out["has"][name]]
    complete = [[(1 if lower else -1) * m[i] for i in rows] for m in by_dataset if all(m[i] is not None for i in rows)]
    if not rows or not complete:
        return
    ranks = [stats.rankdata(whole(row)[0]) for row in complete]
    for i, rank in zip(rows, numpy.mean(ranks, axis=0)):
        out[f"{name}/{i}/rank"] = float(rank)
    k, n = len(rows), len(complete)
    if k < 2 or n < 2:
        return
    tied = all(len(set(r)) == 1 for r in ranks)
    chi2, p = (0.0, 1.0) if tied else (None, None)
    if k > 2 and not tied:
        chi2, p = map(float, stats.friedmanchisquare(*numpy.array(ranks).T))
    elif not tied:  # SciPy wants three: the same formula for two
        ties = sum((r[0] == r[1]) * 6 for r in ranks)
        sums = numpy.sum(ranks, axis=0)
        chi2 = float((2 / n * sum(s * s for s in sums) - 9 * n) / (1 - ties / (6 * n)))
        p = float(stats.chi2.sf(chi2, 1))
    exact = tied or n <= EXACT.get(k, 0)
    least = None
    if exact:
        p, least = exact_friedman(tuple(sorted(tuple(int(2 * v) for v in r) for r in ranks)))
    out[f"{name}/chi2"], out[f"{name}/p"], out[f"{name}/least"] = chi2, float(p), least
    out[f"{name}/difference"] = difference(k, n, level) if p < level else None


def table(t, by_scipy):
    out = {"has": {}}
    means = {}
    for m, lower in enumerate([False, True]):
        means[m] = [dataset(out, f"{d}/{m}", t["datasets"][d], t["same"], lower, by_scipy) for d in range(len(t["datasets"]))]
        out["has"][f"{m}"] = {key.split("/")[2] for key in out if key.split("/")[1:2] == [str(m)] and key.endswith("/mean")}
    for m, lower in enumerate([False, True]):
        ranking(out, f"{m}", means[m], t["same"], lower, 0.05)
    del out["has"]
    return out


if __name__ == "__main__":
    if sys.argv[1:] == ["version"]:
        print(scipy.__version__)
    else:
        json.dump([table(t, by_scipy=i < 20) for i, t in enumerate(json.load(sys.stdin))], sys.stdout)
