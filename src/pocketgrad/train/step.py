"""The training step, the evaluation step and prediction as graphs.

State lives on the device under these names: ``parameters.I`` and ``NAME.I`` (optimizer state) flat
for each share of the optimizer, ``frozen``, ``buffers.DTYPE``, ``step``, ``seed``, ``lr``,
``totals`` (loss·weight, weight, correct) and ``faults`` (step of the first loss that is not finite,
step and position of the first bad label; -1 while there is none). After a fault parameters, buffers
and optimizer state stay as they were before it, so that its cause can be found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, reduce
from typing import Any, Literal, get_args

from pocketgrad.base.dtypes import ALL as DTYPES
from pocketgrad.base.dtypes import DType, float32, int32, int64
from pocketgrad.base.errors import SettingError, ShapeError, UnknownNameError
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, TensorType, Value
from pocketgrad.nn.module import Module
from pocketgrad.nn.optim import Optimizer, Share
from pocketgrad.nn.parameter import Parameter
from pocketgrad.nn.schedule import ConstantLR, Schedule
from pocketgrad.nn.tracing import Tracing, tracing
from pocketgrad.ops import loss as losses
from pocketgrad.ops.arithmetic import add, cast, div, maximum, mul, sub
from pocketgrad.ops.compare import eq, ge, isfinite, lt, ne, where
from pocketgrad.ops.extremes import argmax
from pocketgrad.ops.move import reshape, slice_, stack
from pocketgrad.ops.reduce import sum_
from pocketgrad.ops.source import constant
from pocketgrad.ops.tensor import Tensor
from pocketgrad.passes.autodiff import gradients
from pocketgrad.train.augment import Augment
from pocketgrad.train.packing import Packing

# Prediction, target, weight -> scalar. A model with several outputs gives them as a tuple, and a
# loss may be several: by pattern of the names of the parameters that each of them trains.
LossFunction = Callable[[Any, Value, Value], Value | Mapping[str, Value]]
Kind = Literal["train", "accumulate", "apply", "evaluate", "predict"]
# strict: only kernels that add the products an op means; fast: also Winograd's convolutions, whose
# rounding is some ten times larger.
Numerics = Literal["fast", "strict"]

LOSSES: dict[str, LossFunction] = {
    "cross_entropy": losses.cross_entropy,
    "bce_with_logits": losses.bce_with_logits,
    "mse": losses.mse,
    "huber": losses.huber,
}


@dataclass(frozen=True)
class Stored:
    """How stored samples become what the model sees: (x - mean) / std.

    With ``parts`` above 1, x holds that many inputs of the model, stacked along axis 1.
    """

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    parts: int = 1

    @staticmethod
    def of(source: object) -> Stored:
        """What a data set says of its samples, or says nothing of."""
        mean, std = getattr(source, "mean", (0.0,)), getattr(source, "std", (1.0,))
        return Stored(tuple(mean), tuple(std), getattr(source, "parts", 1))

    def to_json(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"mean": list(self.mean), "std": list(self.std), "parts": self.parts}

    @staticmethod
    def from_json(about: Mapping[str, Any]) -> Stored:
        """What ``to_json`` gave."""
        return Stored(tuple(about["mean"]), tuple(about["std"]), about.get("parts", 1))

    @property
    def plain(self) -> bool:
        """Whether samples are taken as they are."""
        return self.mean == (0.0,) and self.std == (1.0,)


@dataclass(frozen=True)
class Inputs:
    """Types of one batch, and what its numbers mean."""

    x: TensorType
    y: TensorType
    stored: Stored = Stored()

    @property
    def batch(self) -> int:
        """Samples in a batch."""
        return self.x.shape[0]

    @property
    def normalised(self) -> bool:
        """Whether there is anything to do to x. Wide integers with no statistics are indices."""
        return not self.stored.plain or self.x.dtype not in (float32, int32, int64)


@dataclass(frozen=True, eq=False)
class StepSpec:
    """What a step is made of. Building a graph reads it and changes nothing."""

    model: Module
    loss: LossFunction | str
    optimizer: Optimizer
    schedule: Schedule = field(default_factory=ConstantLR)
    accumulate: int = 1
    numerics: Numerics = "fast"
    augment: Augment | None = None

    def __post_init__(self) -> None:
        if self.numerics not in get_args(Numerics):
            raise UnknownNameError("numerics", self.numerics, get_args(Numerics))

    @cached_property
    def shares(self) -> list[Share]:
        """Trainable parameters, divided as the optimizer's groups say."""
        trainable = [n for n, p in self._parameters if p.trainable]
        return self.optimizer.shares(trainable, [n for n, p in self._parameters if not p.trainable])

    @cached_property
    def packings(self) -> dict[str, Packing]:
        """The layout of every flat state of named arrays."""
        shapes = {n: p.shape for n, p in self._parameters}
        lies = {n: p.lies for n, p in self._parameters if p.lies}
        found = {
            f"parameters.{i}": Packing.of(((n, shapes[n]) for n in share.names), lies)
            for i, share in enumerate(self.shares)
        }
        frozen = [(n, p.shape) for n, p in self._parameters if not p.trainable]
        if frozen:
            found["frozen"] = Packing.of(frozen, lies)
        for dtype in DTYPES.values():
            mine = [(n, b.shape) for n, b in self.model.named_buffers() if b.dtype is dtype]
            if mine:
                found[f"buffers.{dtype.name}"] = Packing.of(mine)
        return found

    @cached_property
    def state(self) -> dict[str, TensorType]:
        """Everything that persists on the device between steps."""
        found = {
            name: TensorType((packing.size,), self._dtype(name))
            for name, packing in self.packings.items()
        }
        for i, share in enumerate(self.shares):
            flat = found[f"parameters.{i}"]
            for name in share.optimizer.state_names:
                found[f"{name}.{i}"] = flat
            if self.accumulate > 1:
                found[f"accumulated.{i}"] = flat
        scalars = {"step": int32, "seed": int32, "lr": float32}
        found |= {name: TensorType((), dtype) for name, dtype in scalars.items()}
        return found | {"totals": TensorType((3,)), "faults": TensorType((3,), int32)}

    @property
    def _parameters(self) -> list[tuple[str, Parameter]]:
        return list(self.model.named_parameters())

    @staticmethod
    def _dtype(name: str) -> DType:
        return DTYPES[name.removeprefix("buffers.")] if name.startswith("buffers.") else float32

    def loss_function(self) -> LossFunction:
        """The loss, found by name if it was given by name."""
        if callable(self.loss):
            return self.loss
        if self.loss not in LOSSES:
            raise UnknownNameError("loss", self.loss, LOSSES)
        return LOSSES[self.loss]


def build_graph(spec: StepSpec, inputs: Inputs, kind: Kind) -> Graph:
    """The graph of one kind of step for batches of one type."""
    return _GraphOf(spec, inputs, kind).build()


class _GraphOf:
    """Emits one graph; the order of the methods is the order of the step."""

    def __init__(self, spec: StepSpec, inputs: Inputs, kind: Kind) -> None:
        self.spec, self.inputs, self.kind = spec, inputs, kind
        self.builder = Builder(Tensor)
        self.state: dict[str, Value] = {}
        self.updates: dict[Value, Value] = {}

    def build(self) -> Graph:
        with self.builder:
            names = self.spec.state if self.kind != "predict" else self._read_by_prediction()
            self.state = {n: self.builder.input(self.spec.state[n], n) for n in names}
            x = self.builder.input(self.inputs.x, "x")
            named = self._named_values()
            found, trace = self._forward(x, named)
            prediction = found[0]
            if self.kind == "predict":
                return self.builder.graph(self._named("prediction", prediction))
            y = self.builder.input(self.inputs.y, "y")
            weight = self.builder.input(TensorType((self.inputs.batch,)), "weight")
            parts = self._losses(found, y, weight)
            loss = reduce(add, parts.values())
            self._measure(loss, prediction, y, weight)
            outputs = self._named("loss", loss)
            if self.kind != "evaluate":
                self._keep_buffers(named, trace)
                outputs += self._learn(parts, named)
            return self.builder.graph(outputs, self.updates)

    def _read_by_prediction(self) -> list[str]:
        return [n for n in self.spec.packings if n in self.spec.state] + ["seed", "step"]

    def _named_values(self) -> dict[str, Value]:
        named: dict[str, Value] = {}
        for name, packing in self.spec.packings.items():
            named |= packing.views(self.state[name])
        return named

    def _forward(self, x: Value, named: Mapping[str, Value]) -> tuple[tuple[Value, ...], Tracing]:
        training = self.kind in ("train", "accumulate", "apply")
        seed, step = self.state["seed"], self.state["step"]
        if training and self.spec.augment is not None:
            x = self.spec.augment.moved(x, seed, step)
        if self.inputs.normalised:
            x = _normalised(x, self.inputs.stored)
        if training and self.spec.augment is not None:
            x = self.spec.augment.coloured(x, seed, step)
        with tracing(named, training, seed, step) as trace:
            found = self.spec.model(*_divided(x, self.inputs.stored.parts))
        outputs = found if isinstance(found, tuple) else (found,)
        if not outputs or not all(isinstance(v, Value) for v in outputs):
            kinds = ", ".join(type(v).__name__ for v in outputs) or "nothing"
            raise SettingError(
                f"the model's forward() must return one value or a tuple of values, got {kinds}"
            )
        return outputs, trace

    def _losses(self, found: tuple[Value, ...], y: Value, weight: Value) -> dict[str, Value]:
        """Each loss by the pattern of the parameters it trains; mostly one for all."""
        given = self.spec.loss_function()(found if len(found) > 1 else found[0], y, weight)
        losses = dict(given) if isinstance(given, Mapping) else {"*": given}
        for loss in losses.values():
            if loss.shape != () or not loss.dtype.is_float:
                raise SettingError(f"the loss must be one float, got {loss.type}; average it")
        return losses

    def _measure(self, loss: Value, prediction: Value, y: Value, weight: Value) -> None:
        """Totals over an epoch, and the first fault, without a download per step."""
        count = sum_(weight)
        correct, bad = constant(0.0), constant(self.inputs.batch, int32)
        if classifies(prediction.type, y.type):
            labels = losses.as_labels(y)
            hits = cast(eq(argmax(prediction, 1), labels), float32)
            if len(y.shape) > 1:  # several labels per sample, of which some may be padding
                rows = (y.shape[0], -1)
                counted = reshape(cast(ne(labels, losses.IGNORED), float32), rows)
                hits = div(sum_(reshape(hits, rows), 1), maximum(sum_(counted, 1), 1.0))
            correct = sum_(mul(hits, weight))
            bad = losses.bad_label(y, prediction.shape[1])
        totals = self.state["totals"]
        self.updates[totals] = add(totals, stack([mul(loss, count), count, correct]))
        if self.kind == "evaluate":
            return
        faults, step = self.state["faults"], self.state["step"]
        none = constant(-1, int32)
        broken = where(isfinite(loss), none, step)
        mislabelled = lt(bad, self.inputs.batch)
        news = stack([broken, where(mislabelled, step, none), where(mislabelled, bad, none)])
        self.updates[faults] = where(lt(faults, 0), news, faults)

    def _keep_buffers(self, named: Mapping[str, Value], trace: Tracing) -> None:
        for name, packing in self.spec.packings.items():
            if name.startswith("buffers.") and any(n in trace.updates for n in packing.offsets):
                latest = {n: trace.updates.get(n, named[n]) for n in packing.offsets}
                old = self.state[name]
                self.updates[old] = where(self._sound(), packing.join(latest), old)

    def _learn(self, parts: Mapping[str, Value], named: Mapping[str, Value]) -> list[Value]:
        """Backward and update; returns the flat gradients as outputs."""
        names = [n for share in self.spec.shares for n in share.names]
        by_name: dict[str, Value] = {}
        for pattern, loss in parts.items():
            mine = [n for n in names if n not in by_name and fnmatchcase(n, pattern)]
            if not mine and names:
                raise UnknownNameError("parameter for a loss", pattern, names)
            cts = gradients(self.builder, loss, [named[n] for n in mine])
            for n, ct in zip(mine, cts, strict=True):
                by_name[n] = constant(0.0, float32, named[n].shape) if ct is None else ct
        if idle := [n for n in names if n not in by_name]:
            raise SettingError(f"no loss trains '{idle[0]}'; the losses are for {', '.join(parts)}")
        with self.builder.located("", "update"):
            flats = [
                self.spec.packings[f"parameters.{i}"].join(by_name)
                for i in range(len(self.spec.shares))
            ]
            if self.kind != "train":
                flats = self._accumulated(flats)
            if self.kind != "accumulate":
                self._update(flats)
            step = self.state["step"]
            if self.kind != "accumulate":
                self.updates[step] = add(step, 1)
        return [v for i, g in enumerate(flats) for v in self._named(f"gradient.{i}", g)]

    def _accumulated(self, flats: list[Value]) -> list[Value]:
        """Micro-batches: add up; at the last one average and begin anew."""
        sums = []
        for i, g in enumerate(flats):
            kept = self.state[f"accumulated.{i}"]
            total = add(kept, mul(g, 1.0 / self.spec.accumulate))
            last = self.kind == "apply"
            self.updates[kept] = constant(0.0, float32, kept.shape) if last else total
            sums.append(total)
        return sums

    def _update(self, flats: list[Value]) -> None:
        step = self.state["step"]
        sound = self._sound()
        rate = mul(self.state["lr"], self.spec.schedule.factor(step))
        for i, (share, g) in enumerate(
            zip(self.spec.shares, self.spec.optimizer.clip(flats), strict=True)
        ):
            p = self.state[f"parameters.{i}"]
            old = {n: self.state[f"{n}.{i}"] for n in share.optimizer.state_names}
            lr = mul(rate, share.lr_scale) if share.lr_scale != 1.0 else rate
            new_p, new = share.optimizer.update(p, g, old, lr, add(step, 1))
            self.updates[p] = where(sound, new_p, p)
            for name, value in new.items():
                self.updates[old[name]] = where(sound, value, old[name])

    def _sound(self) -> Value:
        """Whether nothing went wrong up to and in this step."""
        return _all_negative(self.updates[self.state["faults"]])

    def _named(self, name: str, value: Value) -> list[Value]:
        """An output is found by its name; inputs and shared values are not renamed but copied."""
        out = add(value, 0.0) if value in self.builder.inputs else value
        out.name = name
        return [out]


def classifies(prediction: TensorType, y: TensorType) -> bool:
    """Whether y holds class numbers for the classes along axis 1 of the prediction."""
    return not y.dtype.is_float and y.shape == (prediction.shape[0], *prediction.shape[2:])


def has_classes(spec: StepSpec, inputs: Inputs) -> bool:
    """Whether the model's prediction is scores of classes that y names."""
    return classifies(build_graph(spec, inputs, "predict").outputs[0].type, inputs.y)


def _divided(x: Value, parts: int) -> list[Value]:
    """The inputs of the model that are stacked along axis 1."""
    if parts == 1:
        return [x]
    if len(x.shape) < 2 or x.shape[1] != parts:
        raise ShapeError(f"{parts} inputs of the model are stacked along axis 1, x is {x.type}")
    shape = (x.shape[0], *x.shape[2:])
    return [reshape(slice_(x, 1, i, i + 1), shape) for i in range(parts)]


def _normalised(x: Value, stored: Stored) -> Value:
    """(x - mean) / std per channel, from the bytes the batch travelled as."""
    x = cast(x, float32)
    if stored.plain:
        return x
    scale = [1.0 / s for s in stored.std]
    if len(set(zip(stored.mean, scale, strict=True))) == 1:
        return mul(sub(x, stored.mean[0]), scale[0])
    column = (len(scale), *(1,) * (len(x.shape) - 2))
    mean = reshape(stack([constant(m) for m in stored.mean]), column)
    return mul(sub(x, mean), reshape(stack([constant(s) for s in scale]), column))


def _all_negative(faults: Value) -> Value:
    worst = sum_(cast(ge(faults, 0), int32))
    return eq(worst, 0)
