"""Writes statistics.json: reference values for the statistics module, computed by SciPy.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.* && venv/bin/python statistics.py
"""

import numpy
import scipy
from scipy import stats

import document

PROBABILITIES = [0.001, 0.025, 0.1, 0.5, 0.6, 0.75, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9995]
DEGREES = [1, 2, 3, 4, 5, 7, 9, 9.5, 12, 19, 29, 39, 59, 99, 499]
CONFIDENCES = [0.8, 0.9, 0.95, 0.99]


def interval(values, confidence):
    low, high = stats.t.interval(
        confidence, len(values) - 1, loc=numpy.mean(values), scale=stats.sem(values)
    )
    return float(numpy.mean(values)), float(low), float(high)


def estimate(values, confidence):
    value, low, high = interval(values, confidence)
    return {"value": value, "lower": low, "upper": high, "trials": len(values)}


def estimate_of_logarithms(logarithms, confidence):
    value, low, high = (float(numpy.exp(x)) for x in interval(logarithms, confidence))
    return {"value": value, "lower": low, "upper": high, "trials": len(logarithms)}


generator = numpy.random.default_rng(20261121)
samples = [
    [1.0, 2.0],
    [0.0041, 0.0043, 0.0040, 0.0042, 0.0041],
    [1412.0, 1397.5, 1420.25, 1405.0, 1399.75, 1411.5, 1408.0, 1418.0, 1402.5, 1409.0],
    [float(f"{x:.6g}") for x in generator.lognormal(-5, 0.3, 20)],
    [float(f"{x:.6g}") for x in generator.lognormal(8, 1.5, 7)],
]
pairs = [
    [[float(f"{b * 0.38 * e:.6g}"), float(f"{b:.6g}")] for b, e in zip(base, noise, strict=True)]
    for base, noise in (
        (generator.lognormal(-5, 0.4, n), generator.lognormal(0, 0.05, n)) for n in (2, 5, 10, 20)
    )
]

reference = {
    "scipy": scipy.__version__,
    "quantiles": [
        {"probability": p, "degreesOfFreedom": d, "t": float(stats.t.ppf(p, d))}
        for d in DEGREES
        for p in PROBABILITIES
    ],
    "arithmeticMeans": [
        {"values": s, "confidence": c, "estimate": estimate(s, c)} for s in samples for c in CONFIDENCES
    ],
    "geometricMeans": [
        {"values": s, "confidence": c, "estimate": estimate_of_logarithms(numpy.log(s), c)}
        for s in samples
        for c in CONFIDENCES
    ],
    "pairedRatios": [
        {
            "pairs": p,
            "confidence": c,
            "estimate": estimate_of_logarithms(
                numpy.log([a for a, _ in p]) - numpy.log([b for _, b in p]), c
            ),
        }
        for p in pairs
        for c in CONFIDENCES
    ],
}

document.write(__file__, reference)
