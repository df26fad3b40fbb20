"""Training: ``Trainer`` for whole epochs, ``compile_step`` for a loop of your own."""

from __future__ import annotations

from pocketgrad.train import metrics
from pocketgrad.train.augment import Augment
from pocketgrad.train.callbacks import Callback, EarlyStop, KeepBest
from pocketgrad.train.history import Epoch, History
from pocketgrad.train.open_loop import CompiledStep, compile_step
from pocketgrad.train.trainer import Evaluation, Trainer

__all__ = [
    "Augment",
    "Callback",
    "CompiledStep",
    "EarlyStop",
    "Epoch",
    "Evaluation",
    "History",
    "KeepBest",
    "Trainer",
    "compile_step",
    "metrics",
]
