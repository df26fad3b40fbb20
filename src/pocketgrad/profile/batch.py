"""A batch to profile a model of the zoo with when there is no data: random, of the right types."""

from __future__ import annotations

import numpy as np

from pocketgrad.base.dtypes import Array, uint8
from pocketgrad.ir.core import TensorType
from pocketgrad.train.batches import Batch
from pocketgrad.train.preview import with_target
from pocketgrad.train.step import Inputs, StepSpec, build_graph

TOKENS = 10  # indices stay below this, which every vocabulary has
IMAGE_MAX = 255.0


def inputs_for(spec: StepSpec, sample: TensorType, batch: int) -> Inputs:
    """The types of a batch of such samples; images travel as the bytes they are stored in."""
    image = len(sample.shape) == 3
    x = TensorType((batch, *sample.shape), uint8 if image else sample.dtype)
    return with_target(spec, x, std=(IMAGE_MAX,) if image else (1.0,))


def random_batch(spec: StepSpec, inputs: Inputs, seed: int) -> Batch:
    """Samples and targets of these types, the same for the same seed."""
    random = np.random.default_rng(seed)
    prediction = build_graph(spec, inputs, "predict").outputs[0].type
    classes = prediction.shape[1] if len(prediction.shape) > 1 else 2
    x = _random(random, inputs.x, 256 if inputs.x.dtype is uint8 else TOKENS)
    y = _random(random, inputs.y, classes)
    return Batch(x, y, np.ones(inputs.batch, np.float32), inputs.batch)


def _random(random: np.random.Generator, of: TensorType, below: int) -> Array:
    if of.dtype.is_float:
        return random.standard_normal(of.shape, np.float32).astype(of.dtype.numpy)
    return random.integers(0, below, of.shape).astype(of.dtype.numpy)
