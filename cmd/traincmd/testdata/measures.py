"""Measures of exported predictions by NumPy: measures.py PREDICTIONS.npz prints JSON.

The file is what train --folds K --predictions-out writes: labels and predictions (float32), and the fold in which each row
was held out. The mean predictor predicts of each fold the mean of the other rows' labels, as float32.
"""

import json
import sys

import numpy as np


def ratio(a, b):
    return np.divide(a, b, out=np.zeros_like(a), where=(a != 0) | (b != 0))


def measures(d, p):
    p = p / p.sum(axis=1, keepdims=True)
    log = np.log(np.divide(d, np.maximum(p, 1e-12), out=np.ones_like(d), where=d > 0))
    return {
        "kl": (d * log).sum(1),
        "euclidean": np.sqrt(((d - p) ** 2).sum(1)),
        "sorensen": np.abs(d - p).sum(1) / (d + p).sum(1),
        "chi2": ratio((d - p) ** 2, d + p).sum(1),
        "fidelity": np.sqrt(d * p).sum(1),
        "intersection": np.minimum(d, p).sum(1),
        "chebyshev": np.abs(d - p).max(1),
        "clark": np.sqrt((ratio(d - p, d + p) ** 2).sum(1)),
        "canberra": ratio(np.abs(d - p), d + p).sum(1),
        "cosine": (d * p).sum(1) / np.sqrt((d * d).sum(1) * (p * p).sum(1)),
    }


def over_folds(labels, folds, predicted):
    means = {}
    for fold in range(folds.max() + 1):
        for name, values in measures(labels[folds == fold], predicted(fold)).items():
            means.setdefault(name, []).append(values.mean())
    return {name: {"mean": np.mean(v), "std": np.std(v), "folds": v} for name, v in means.items()}


def main():
    data = np.load(sys.argv[1])
    labels, folds = data["labels"].astype(np.float64), data["folds"]
    predictions = data["predictions"].astype(np.float64)

    def mean_baseline(fold):
        mean = labels[folds != fold].mean(axis=0).astype(np.float32).astype(np.float64)
        return np.broadcast_to(mean, labels[folds == fold].shape)

    json.dump({
        "model": over_folds(labels, folds, lambda fold: predictions[folds == fold]),
        "mean_baseline": over_folds(labels, folds, mean_baseline),
    }, sys.stdout)


main()
