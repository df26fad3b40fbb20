"""Classes of images and texts, or numbers to be met."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad import data
from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError
from pocketgrad.data.characters import character_codes
from pocketgrad.data.images import read_image
from pocketgrad.nn.module import Module
from pocketgrad.ops import loss as losses
from pocketgrad.ops.arithmetic import add, mul
from pocketgrad.tasks.api import Source, Task, lines_of
from pocketgrad.train.step import LossFunction
from pocketgrad.train.trainer import Trainer
from pocketgrad.zoo.registry import ModelCard

AUXILIARY = 0.3  # of the loss of GoogLeNet's heads beside the main one


class Classify(Task):
    """One class per sample."""

    usual = "embedded"
    optimizer_name = "sgd"

    def model(self, card: ModelCard, source: Source, **options: Any) -> Module:
        fitting: dict[str, Any] = {"classes": len(source.classes) or int(source.y[0].size)}
        if len(source.sample_shape) == 3:
            fitting["channels"], fitting["image"] = source.sample_shape[:2]
        elif len(source.sample_shape) == 1 and source.x.dtype == np.int32:
            fitting["length"] = source.sample_shape[0]
        taken = {name: n for name, n in fitting.items() if name in card.options}
        return card.make(**taken, **options)

    def loss_for(self, source: Source) -> LossFunction | str:
        return cross_entropies if source.classes else "mse"

    def predict(self, trainer: Trainer, source: Source, path: Path) -> list[str]:
        """The likeliest classes of an image, or of each line of a text."""
        if source.x.dtype == np.uint8:
            names, samples = [path.name], self._image(path, source)[None]
        else:
            names = lines_of(path)
            samples = np.stack([character_codes(t, source.sample_shape[0]) for t in names])
        scores = trainer.predict(samples).astype(np.float64)
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        found = []
        for name, row in zip(names, shares, strict=True):
            best = np.argsort(-row)[:3]
            said = ", ".join(f"{source.classes[i]} {row[i]:.1%}" for i in best)
            found.append(f"{name[:60]}: {said}")
        return found

    def _image(self, path: Path, source: data.Dataset) -> Array:
        pixels = read_image(path)
        if pixels.shape != source.sample_shape:
            raise DataError(
                f"'{path}' is an image of {_words(pixels.shape)}; the model was trained on images "
                f"of {_words(source.sample_shape)}: convert or resize it"
            )
        return pixels


def cross_entropies(outputs: Any, y: Any, weight: Any) -> Any:
    """The cross-entropy; of a model with auxiliary heads, theirs added at a lower weight."""
    if not isinstance(outputs, tuple):
        return losses.cross_entropy(outputs, y, weight)
    main, *others = (losses.cross_entropy(output, y, weight) for output in outputs)
    for other in others:
        main = add(main, mul(other, AUXILIARY))
    return main


def _words(shape: tuple[int, ...]) -> str:
    colours = {1: "grey", 3: "colour (RGB)"}.get(shape[0], f"{shape[0]} channels")
    return f"{shape[1]} × {shape[2]} pixels, {colours}"
