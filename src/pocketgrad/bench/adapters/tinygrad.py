"""tinygrad on OpenCL: its own layers and SGD, the whole step captured by TinyJit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pocketgrad.bench.api import Variant
from pocketgrad.bench.network import Layer, Network
from pocketgrad.bench.task import NotWrittenError, Task

REQUIRES = ("tinygrad",)
VARIANTS = (Variant("opencl", "TinyJit on the OpenCL backend", env={"DEV": "CL"}),)
CAPTURED = 3  # calls until TinyJit replays what it has seen


def version() -> str:
    """Of the installed tinygrad; finding OpenCL is a part of importing it."""
    from importlib import metadata

    import tinygrad

    assert tinygrad.Tensor
    return metadata.version("tinygrad")


def open_session(task: Task, variant: Variant) -> TinygradSession:
    """Compiled by the first steps."""
    return TinygradSession(task)


class TinygradSession:
    """Parameters are updated in place; two batches are copied into the captured inputs."""

    def __init__(self, task: Task) -> None:
        import tinygrad
        from tinygrad import Tensor, nn

        self.tinygrad, self.weights = tinygrad, task.weights
        self.layers = {x.name: made(nn, x) for x in task.network.layers if x.kind in MADE}
        self.state = nn.state.get_state_dict(self.layers)
        missing = set(task.weights) ^ set(self.state)
        if missing:
            raise NotWrittenError(f"tinygrad has no such arrays: {', '.join(sorted(missing)[:4])}")
        work = task.workload
        self.optimizer = nn.optim.SGD(
            nn.state.get_parameters(self.layers), work.lr, momentum=work.momentum
        )
        self.batches = [(Tensor(x).realize(), Tensor(y).realize()) for x, y in task.batches]
        network, layers, optimizer = task.network, self.layers, self.optimizer

        def train(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = scores(network, layers, x).sparse_categorical_crossentropy(y).backward()
            return loss.realize(*optimizer.schedule_step())

        self.run = tinygrad.TinyJit(train)
        self.loss: Any = None
        self.next = 0
        self.reset()
        for _ in range(CAPTURED):
            self.step()
        self.sync()
        self.reset()

    def reset(self) -> None:
        """Into the same buffers, which the captured step refers to."""
        tensor = self.tinygrad.Tensor
        for name, held in self.state.items():
            array = tensor(self.weights[name]).to(held.device).cast(held.dtype)
            held.assign(array.reshape(held.shape)).realize()
        for momentum in getattr(self.optimizer, "b", ()):
            momentum.assign(tensor.zeros(*momentum.shape)).realize()
        self.next = 0
        self._finish()

    def step(self) -> None:
        """Enqueued on the device."""
        x, y = self.batches[self.next % len(self.batches)]
        self.next += 1
        with self.tinygrad.helpers.Context(TRAINING=1):
            self.loss = self.run(x, y)

    def sync(self) -> float:
        """Reading the loss waits for the queue; the device is waited for besides."""
        loss = float(self.loss.item())
        self._finish()
        return loss

    def _finish(self) -> None:
        self.tinygrad.Device[self.tinygrad.Device.DEFAULT].synchronize()

    def facts(self) -> Mapping[str, Any]:
        """Where it computes."""
        return {"device": str(self.tinygrad.Device.DEFAULT)}

    def close(self) -> None:
        """The process ends with it."""


def made(nn: Any, layer: Layer) -> Any:
    """The layer with its parameters, under the names we share with PyTorch."""
    return MADE[layer.kind](nn, layer.settings)


def scores(network: Network, layers: Mapping[str, Any], x: Any) -> Any:
    """Forward."""

    def apply(layer: Layer, given: list[Any]) -> Any:
        if layer.name in layers:
            return layers[layer.name](*given)
        if layer.kind not in FUNCTIONS:
            raise NotWrittenError(f"{layer.kind} of '{layer.name}' is not written for tinygrad")
        return FUNCTIONS[layer.kind](layer, *given)

    return network.run(x, apply)


def _conv(nn: Any, s: Mapping[str, Any]) -> Any:
    if s["stride"][0] != s["stride"][1]:
        raise NotWrittenError("strides that differ are not written for tinygrad")
    return nn.Conv2d(
        s["channels"], s["out"], s["window"], s["stride"][0], s["padding"], s["dilation"][0],
        s["groups"], s["bias"],
    )  # fmt: skip


def _pool(name: str) -> Callable[..., Any]:
    def pool(layer: Layer, x: Any) -> Any:
        s = layer.settings
        more = {"count_include_pad": s["count_padding"]} if name == "avg_pool2d" else {}
        padding = (s["padding"][1], s["padding"][1], s["padding"][0], s["padding"][0])
        return getattr(x, name)(
            s["window"], s["stride"], s.get("dilation", 1), padding, ceil_mode=s["ceil"], **more
        )

    return pool


MADE: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "conv": _conv,
    "linear": lambda nn, s: nn.Linear(s["channels"], s["out"], s["bias"]),
    "batch_norm": lambda nn, s: nn.BatchNorm(s["channels"], s["eps"], momentum=s["momentum"]),
    "embedding": lambda nn, s: nn.Embedding(s["rows"], s["size"]),
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "max_pool": _pool("max_pool2d"),
    "avg_pool": _pool("avg_pool2d"),
    "mean": lambda layer, x: x.mean((2, 3), keepdim=True),
    "concat": lambda layer, x, *rest: x.cat(*rest, dim=layer.settings["axis"]),
    "relu": lambda layer, x: x.relu(),
    "relu6": lambda layer, x: x.relu6(),
    "flatten": lambda layer, x: x.flatten(1),
    "transpose": lambda layer, x: x.permute(layer.settings["axes"]),
    "add": lambda layer, a, b: a + b,
}
