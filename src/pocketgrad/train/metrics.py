"""Measures of predictions as NumPy arrays, beside the loss and accuracy that the device totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import ShapeError

Metric = Callable[[Array, Array], float]  # scores [N, classes] (or values), targets -> number


def accuracy(scores: Array, labels: Array) -> float:
    """Share of samples whose highest score is at the label."""
    return top_k_accuracy(scores, labels, 1)


def top_k_accuracy(scores: Array, labels: Array, k: int = 5) -> float:
    """Share of samples whose label is among the ``k`` highest scores; equal scores: lower class."""
    _check(scores, labels)
    ranked = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return float((ranked == labels[:, None]).any(axis=1).mean())


def confusion_matrix(scores: Array, labels: Array) -> Array:
    """Counts [true class, predicted class]."""
    _check(scores, labels)
    n = scores.shape[1]
    pairs = labels.astype(np.int64) * n + scores.argmax(axis=1)
    return np.bincount(pairs, minlength=n * n).reshape(n, n)


def macro_f1(scores: Array, labels: Array) -> float:
    """The F1 score of each class that occurs, averaged."""
    table = confusion_matrix(scores, labels).astype(np.float64)
    hits, found, real = np.diag(table), table.sum(axis=0), table.sum(axis=1)
    there = (found + real) > 0
    return float((2 * hits[there] / (found + real)[there]).mean())


def mean_absolute_error(values: Array, targets: Array) -> float:
    """Average distance from the target."""
    if values.shape != targets.shape:
        raise ShapeError(f"values {values.shape} and targets {targets.shape} differ in shape")
    return float(np.abs(values.astype(np.float64) - targets).mean())


def _check(scores: Array, labels: Array) -> None:
    if scores.ndim != 2 or labels.shape != scores.shape[:1]:
        raise ShapeError(
            f"takes scores [N, classes] and labels [N], got {scores.shape} and {labels.shape}"
        )


ALL: Mapping[str, Metric] = {
    "accuracy": accuracy,
    "macro_f1": macro_f1,
    "mean_absolute_error": mean_absolute_error,
    "top_5_accuracy": top_k_accuracy,
}
