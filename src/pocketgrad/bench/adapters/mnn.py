"""MNN: training with the layers and optimizers of its wheel, which builds every step anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pocketgrad.bench.api import Variant
from pocketgrad.bench.network import Layer, ends
from pocketgrad.bench.task import NotWrittenError, Task

REQUIRES = ("MNN",)
VARIANTS = (Variant("cpu", "MNN's CPU backend in full precision"),)
FRESH = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}  # of a new norm


def version() -> str:
    """Of the installed MNN."""
    import MNN

    return str(MNN.version())


def open_session(task: Task, variant: Variant) -> MnnSession:
    """Nothing is compiled."""
    return MnnSession(task)


class MnnSession:
    """A module of MNN's own layers, and its SGD."""

    def __init__(self, task: Task) -> None:
        import MNN.expr as F  # noqa: N812  as MNN's own examples do
        from MNN import nn, optim

        self.F, self.nn, self.optim, self.task = F, nn, optim, task
        F.lazy_eval(True)  # otherwise there are no gradients
        F.set_global_executor_config(0, 1, task.threads)  # CPU, high precision
        self.scores = task.network.layers[-1].shape
        if len(self.scores) != 2 or len(task.network.shape) not in (2, 4):
            raise NotWrittenError("models of images and of vectors alone are written for MNN")
        for layer in task.network.layers:
            _check(layer, task)
        self.batches = [(self._input(x), self._target(y)) for x, y in task.batches]
        self.loss = float("nan")
        self.reset()

    def _input(self, x: Any) -> Any:
        held = self.F.const(x, list(x.shape), self.F.NCHW)
        return self.F.convert(held, self.F.NC4HW4) if x.ndim == 4 else held

    def _target(self, y: Any) -> Any:
        rows = np.eye(self.scores[1], dtype=np.float32)[y]
        return self.F.const(rows, list(rows.shape), self.F.NCHW)

    def reset(self) -> None:
        """A new module and optimizer: both are cheap, and MNN forgets nothing otherwise."""
        work = self.task.workload
        self.model = _network_class(self.nn)(self.F, self.nn, self.task)
        self.model.train(True)
        self.optimizer = self.optim.SGD(self.model, work.lr, work.momentum, 0.0)
        self.next = 0
        self.pending: Any = None

    def step(self) -> None:
        """The step before is made; this one waits, for MNN forgets a loss when it updates."""
        self._make()
        x, y = self.batches[self.next % len(self.batches)]
        self.next += 1
        probabilities = self.F.softmax(self.model.forward(x), 1)
        self.pending = self.nn.loss.cross_entropy(probabilities, y)

    def sync(self) -> float:
        """The loss costs a forward pass more, once; then the step that waits is made."""
        if self.pending is not None:
            self.loss = float(np.asarray(self.pending.read()).reshape(-1)[0])
            self._make()
        return self.loss

    def _make(self) -> None:
        if self.pending is not None and not self.optimizer.step(self.pending):
            raise RuntimeError("MNN.optim.SGD.step failed: MNN has no gradient of some operation")
        self.pending = None

    def facts(self) -> Mapping[str, Any]:
        """Nothing that the process does not tell."""
        return {}

    def close(self) -> None:
        """The process ends with it."""


def _network_class(nn: Any) -> Any:
    """The class needs its base, which is not imported with this module."""

    class Network(nn.Module):  # type: ignore[misc]  # MNN has no types
        def __init__(self, expr: Any, nn: Any, task: Task) -> None:
            super().__init__()
            self.expr, self.task = expr, task
            self.made = {x.name: MADE[x.kind](nn, x) for x in task.network.layers if x.kind in MADE}
            for i, (name, part) in enumerate(self.made.items()):
                setattr(self, f"part{i}", part)  # by which MNN finds the parameters
                if f"{name}.running_mean" not in task.weights:
                    part.load_parameters(_arrays(expr, part, name, task.weights))

        def forward(self, x: Any) -> Any:
            def apply(layer: Layer, given: list[Any]) -> Any:
                if layer.name in self.made:
                    return self.made[layer.name].forward(*given)
                return FUNCTIONS[layer.kind](self.expr, layer, *given)

            return self.task.network.run(x, apply)

    return Network


def _arrays(expr: Any, part: Any, name: str, weights: Mapping[str, Any]) -> list[Any]:
    """In MNN's order: the bias, if there is one, comes first."""
    names = [n for n in (f"{name}.bias", f"{name}.weight") if n in weights]
    shapes = [list(p.shape) for p in part.parameters]
    found = [
        expr.const(np.ascontiguousarray(weights[n].reshape(shape)), shape, expr.NCHW)
        for n, shape in zip(names, shapes, strict=True)
    ]
    for array in found:
        array.fix_as_trainable()
    return found


def _check(layer: Layer, task: Task) -> None:
    """Refuse what is not written here before anything is built."""
    if layer.kind not in MADE and layer.kind not in FUNCTIONS:
        raise NotWrittenError(f"{layer.kind} of '{layer.name}' is not written for MNN")
    s = layer.settings
    if layer.kind == "conv" and s["groups"] not in (1, s["channels"]):
        raise NotWrittenError("grouped convolutions are not written for MNN")
    if layer.kind == "batch_norm":
        for what, fresh in FRESH.items():
            if (task.weights[f"{layer.name}.{what}"] != fresh).any():
                raise NotWrittenError(f"'{layer.name}' begins with a norm that MNN cannot be given")
    if layer.kind.endswith("_pool"):
        size = task.network.shape_of(layer.inputs[0])[2:]
        if any(s["padding"]) or any(map(any, ends(layer, (size[0], size[1])))):
            raise NotWrittenError("padded pooling is not written for MNN")


def _conv(nn: Any, layer: Layer) -> Any:
    from MNN.expr import Padding_Mode

    s = layer.settings
    sizes = [list(reversed(s[n])) for n in ("window", "stride", "padding", "dilation")]  # x, y
    explicit = Padding_Mode.CAFFE  # the others ignore the padding that is given
    return nn.conv(s["channels"], s["out"], *sizes, s["groups"] > 1, s["bias"], explicit)


def _pool(name: str) -> Callable[..., Any]:
    def pool(expr: Any, layer: Layer, x: Any) -> Any:
        s = layer.settings
        return getattr(expr, name)(x, list(reversed(s["window"])), list(reversed(s["stride"])))

    return pool


def _flatten(expr: Any, layer: Layer, x: Any) -> Any:
    return expr.reshape(expr.convert(x, expr.NCHW), list(layer.shape))


MADE: Mapping[str, Callable[[Any, Layer], Any]] = {
    "conv": _conv,
    "linear": lambda nn, x: nn.linear(
        x.settings["channels"], x.settings["out"], x.settings["bias"]
    ),
    "batch_norm": lambda nn, x: nn.batch_norm(
        x.settings["channels"], 4, 1 - x.settings["momentum"], x.settings["eps"]
    ),
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "max_pool": _pool("max_pool"),
    "avg_pool": _pool("avg_pool"),
    "mean": lambda expr, layer, x: expr.reduce_mean(expr.convert(x, expr.NCHW), [2, 3], True),
    "concat": lambda expr, layer, *given: expr.concat(list(given), layer.settings["axis"]),
    "relu": lambda expr, layer, x: expr.relu(x),
    "relu6": lambda expr, layer, x: expr.relu6(x),
    "flatten": _flatten,
    "add": lambda expr, layer, a, b: a + b,
}
