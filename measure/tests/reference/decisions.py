"""Writes decisions.json: reference values for conclusions from intervals, computed by SciPy and statsmodels. If a
method other than the product's exists, the script uses that method.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 statsmodels==0.14.6 numpy==2.4.6
    venv/bin/python decisions.py
"""

import itertools

import numpy
import pandas
import scipy
import statsmodels
import statsmodels.formula.api as formulas
from scipy import optimize, stats
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

import document

generator = numpy.random.default_rng(20261122)


def rounded(values):
    return [float(f"{value:.8g}") for value in values]


def known_spread(looks, overall):
    """With many blocks the spread is almost known. The looks' statistics are then jointly normal, with the
    correlation √(nᵢ/nⱼ): a multivariate normal integral (Genz's, in SciPy)."""
    n = numpy.array(looks, float)
    covariance = numpy.sqrt(numpy.minimum.outer(n, n) / numpy.maximum.outer(n, n))

    def beyond(c):
        within = stats.multivariate_normal.cdf(
            numpy.full(len(n), c), cov=covariance, lower_limit=numpy.full(len(n), -c),
            maxpts=400_000, abseps=1e-6, releps=1e-6, rng=numpy.random.default_rng(1),
        )
        return 1 - float(numpy.squeeze(within)) - overall

    c = optimize.brentq(
        beyond, stats.norm.isf(overall / 2), stats.norm.isf(overall / 2 / len(n)) + 1e-3, xtol=1e-7
    )
    return float(2 * stats.norm.sf(c))


def simulated(looks, overall, runs=4_000_000):
    """The level below which the least p-value of the t tests at all looks lies in a share `overall` of the runs."""
    total = numpy.zeros(runs)
    squares = numpy.zeros(runs)
    least = numpy.ones(runs)
    before = 0
    for n in looks:
        more = n - before
        before = n
        mean = generator.normal(0, more**-0.5, runs)
        total += more * mean
        squares += more * mean**2
        if more > 1:
            squares += generator.chisquare(more - 1, runs)
        t = numpy.abs(total) / n / numpy.sqrt((squares - total**2 / n) / (n - 1) / n)
        least = numpy.minimum(least, 2 * stats.t.sf(t, n - 1))
    return float(numpy.quantile(least, overall))


LOOKS = [
    [10, 15, 20], [5, 10], [10, 20], [5, 10, 15, 20], [10, 20, 30, 40, 50], [5, 6], [5, 50], [49, 50],
    [5, 20, 50], [5, 7, 20], [10, 11, 12, 13, 14], [5, 10, 15, 20, 25, 30, 40, 50],
]
LARGE = [[1000, 2000], [1000, 2000, 3000], [1000, 1500, 2000], [500, 1000, 3000]]
sequential = [
    {"looks": looks, "overall": overall, "level": simulated(looks, overall), "tolerance": 0.01}
    for looks in LOOKS
    for overall in (0.05, 0.1)
] + [
    {"looks": looks, "overall": overall, "level": known_spread(looks, overall), "tolerance": 0.001}
    for looks in LARGE
    for overall in (0.01, 0.05, 0.1)
]

equivalence = []
for n, spread, shift, within, level in itertools.product(
    (3, 5, 10, 20), (0.005, 0.03), (0.0, 0.02, -0.04), (0.02, 0.05), (0.05, 0.0116)
):
    first = rounded(generator.lognormal(-5, 0.2, n))
    second = rounded(numpy.array(first) * numpy.exp(generator.normal(shift, spread, n)))
    p, _, _ = ttost_paired(numpy.log(first), numpy.log(second), -numpy.log1p(within), numpy.log1p(within))
    equivalence.append(
        {"pairs": list(zip(first, second, strict=True)), "within": within, "level": level, "shown": bool(p < level)}
    )

holm = []
for size in (1, 2, 3, 4, 8, 20):
    for level in (0.01, 0.025, 0.05):
        for _ in range(8):
            p = rounded(generator.beta(0.2, 2, size))
            reject = multipletests(p, alpha=level, method="holm")[0]
            holm.append({"p": p, "level": level, "shown": [bool(r) for r in reject]})


def position(blocks, candidates, effect, spread):
    """Fits the nested models directly, with a column for each block, candidate and place."""
    orders = [list(generator.permutation(candidates)) for _ in range(blocks)]
    level = generator.normal(-5, 0.3, candidates)
    drift = generator.normal(0, 0.1, blocks)
    rows, told = [], []
    for block, order in enumerate(orders):
        told.append([])
        for place, candidate in enumerate(order):
            logarithm = level[candidate] + drift[block] + effect * place + generator.normal(0, spread)
            figure = float(f"{numpy.exp(logarithm):.8g}")
            rows.append((block, candidate, place, numpy.log(figure)))
            told[-1].append([int(candidate), figure])
    data = pandas.DataFrame(rows, columns=["block", "candidate", "place", "y"])
    small = formulas.ols("y ~ C(block) + C(candidate)", data).fit()
    large = formulas.ols("y ~ C(block) + C(candidate) + C(place)", data).fit()
    if large.df_model - small.df_model != candidates - 1:
        return None  # places and candidates are indistinguishable in these orders
    row = anova_lm(small, large).iloc[1]
    places = [0.0] + [large.params[f"C(place)[T.{place}]"] for place in range(1, candidates)]
    return {
        "blocks": told, "f": float(row["F"]), "p": float(row["Pr(>F)"]),
        "between": int(row["df_diff"]), "within": int(large.df_resid),
        "ratio": float(numpy.exp(max(places) - min(places))),
    }


positions = [
    case
    for blocks, candidates, effect in itertools.product((5, 6, 10, 15), (2, 3, 4, 7), (0.0, 0.02, 0.1))
    if (case := position(blocks, candidates, effect, 0.02))
]

expanded = []
for _ in range(40):
    n = int(generator.integers(2, 21))
    values = rounded(generator.lognormal(-5, generator.choice([0.01, 0.1]), n))
    meter = float(f"{generator.uniform(0, 0.2):.4g}")
    confidence = float(generator.choice([0.95, 0.9768]))
    logarithms = numpy.log(values)
    # Type A and type B as relative variances, each with its own factor.
    of_trials = stats.t.isf((1 - confidence) / 2, n - 1) * stats.sem(logarithms)
    whole = numpy.sqrt(of_trials**2 + 4 * meter**2)
    expanded.append({
        "values": values, "meter": meter, "confidence": confidence,
        "lower": float(numpy.exp(logarithms.mean() - whole)),
        "upper": float(numpy.exp(logarithms.mean() + whole)),
    })

reference = {
    "scipy": scipy.__version__, "statsmodels": statsmodels.__version__, "numpy": numpy.__version__,
    "sequential": sequential, "equivalence": equivalence, "holm": holm, "positions": positions,
    "expanded": expanded,
}

document.write(__file__, reference)
