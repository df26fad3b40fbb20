"""Writes a workload to a folder that every participant reads: network, first weights, batches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import int32
from pocketgrad.base.errors import SettingError
from pocketgrad.bench.describe import describe
from pocketgrad.bench.task import NotWrittenError, Workload
from pocketgrad.ir.core import TensorType
from pocketgrad.nn.dropout import Dropout
from pocketgrad.nn.module import Module
from pocketgrad.nn.optim import SGD
from pocketgrad.nn.recurrent import Recurrent
from pocketgrad.train.step import Inputs, StepSpec, build_graph
from pocketgrad.zoo import card


def options_of(workload: Workload) -> dict[str, Any]:
    """What the model is made with."""
    image = workload.image
    takes = "image" in card(workload.model).options
    return {"image": image} if image and takes else {}


def model_of(name: str, options: Mapping[str, Any]) -> Module:
    """The model, without dropout: every framework draws other numbers, and losses must agree."""
    model = card(name).make(**options)
    for part in model.modules():
        if isinstance(part, Dropout):
            part.p = 0.0
        if isinstance(part, Recurrent):
            part.dropout = 0.0
    return model


def prepare(workload: Workload, folder: Path) -> int:
    """Write the folder; the arithmetic of one training step, the same for all participants."""
    if workload.batch < 1 or workload.batches < 1:
        raise SettingError(f"batch {workload.batch}: choose 1 or more")
    found = card(workload.model)
    if len(found.inputs) != 1:
        raise SettingError(
            f"the model '{workload.model}' takes {len(found.inputs)} inputs; the benchmark trains "
            "models of one: see `pocketgrad models`"
        )
    options = options_of(workload)
    model = model_of(workload.model, options).initialise(workload.seed)
    (sample,) = found.sample(workload.image)
    spec = StepSpec(model, "cross_entropy", SGD(workload.lr, momentum=workload.momentum))
    x = TensorType((workload.batch, *sample.shape), sample.dtype)
    prediction = _prediction(spec, x)
    y = TensorType((workload.batch, *prediction.shape[2:]), int32)
    graph = build_graph(spec, Inputs(x, y), "train")
    _write_batches(workload, x, y, prediction.shape[1], folder)
    weights: dict[str, Any] = dict(model.state_dict())  # Any: savez has options among its names
    np.savez(folder / "weights.npz", **weights)
    about: dict[str, Any] = {"workload": workload.to_json(), "options": options}
    try:
        about["network"] = describe(model, sample, workload.batch).to_json()
    except NotWrittenError as error:
        about["unwritten"] = str(error)
    (folder / "task.json").write_text(json.dumps(about))
    return sum(node.cost.flops for node in graph.nodes)


def _prediction(spec: StepSpec, x: TensorType) -> TensorType:
    target = TensorType(x.shape[:1], int32)  # not read by a prediction
    prediction = build_graph(spec, Inputs(x, target), "predict").outputs[0].type
    if len(prediction.shape) < 2:
        raise SettingError(f"the model gives {prediction}, not scores of classes")
    return prediction


def _write_batches(
    workload: Workload, x: TensorType, y: TensorType, classes: int, folder: Path
) -> None:
    rng = np.random.default_rng(workload.seed)
    arrays: dict[str, Any] = {}
    for i in range(workload.batches):
        if x.dtype.is_float:
            arrays[f"x{i}"] = rng.standard_normal(x.shape, np.float32)
        else:
            arrays[f"x{i}"] = rng.integers(0, classes, x.shape, x.dtype.numpy)
        arrays[f"y{i}"] = rng.integers(0, classes, y.shape, np.int32)
    np.savez(folder / "batches.npz", **arrays)
