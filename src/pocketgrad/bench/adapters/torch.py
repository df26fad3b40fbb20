"""PyTorch: the network as an `fx` graph of its own layers, which is code as one would write it.

Fresh activations are overwritten in place where torchvision's models do so, gradients are dropped
between steps, and the update is the fused one: PyTorch at its best.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from pocketgrad.bench.api import Variant
from pocketgrad.bench.network import Layer, Network
from pocketgrad.bench.task import Task

REQUIRES = ("torch",)
# An allocator that gives memory back makes the next step fault it in again, page by page.
KEEP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "4294967296"}
VARIANTS = (
    Variant("eager", "images N C H W, default allocator"),
    Variant("channels-last", "images N H W C, default allocator"),
    Variant("eager-keep", "as eager, memory kept by the allocator", env=KEEP),
    Variant("channels-last-keep", "as channels-last, memory kept by the allocator", env=KEEP),
    Variant("compile", "torch.compile, memory kept by the allocator", env=KEEP),
    Variant("bf16", "autocast to bfloat16, channels-last, memory kept", "bfloat16", KEEP),
)  # fmt: skip
IN_PLACE_AFTER = ("conv", "batch_norm", "linear", "add")  # none needs its own output for a gradient


def version() -> str:
    """Of the installed PyTorch."""
    import torch

    return str(torch.__version__)


def open_session(task: Task, variant: Variant) -> TorchSession:
    """Eager or compiled, by the variant."""
    return TorchSession(task, variant.name)


class TorchSession:
    """One model, its optimizer, and batches as tensors made beforehand."""

    def __init__(self, task: Task, variant: str) -> None:
        import torch

        torch.set_num_threads(task.threads)
        self.torch, self.weights = torch, task.weights
        self.cast = variant == "bf16"
        layout = torch.contiguous_format
        if variant.startswith(("channels-last", "bf16")) and len(task.network.shape) == 4:
            layout = torch.channels_last
        self.model = module(task.network).to(memory_format=layout).train()
        self.state = self.model.state_dict()
        work = task.workload
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=work.lr, momentum=work.momentum, fused=True
        )
        self.batches = [(_tensor(x, layout), torch.from_numpy(y).long()) for x, y in task.batches]
        self.forward = self._loss
        if variant == "compile":
            self.forward = torch.compile(self._loss)
        self.next = 0
        self.loss: Any = None
        self.reset()

    def _loss(self, x: Any, y: Any) -> Any:
        functional = self.torch.nn.functional
        if not self.cast:
            return functional.cross_entropy(self.model(x), y)
        with self.torch.autocast("cpu", self.torch.bfloat16):
            return functional.cross_entropy(self.model(x), y)

    def reset(self) -> None:
        """Weights are copied in place, one after the other."""
        with self.torch.no_grad():
            for name, tensor in self.state.items():
                tensor.copy_(self.torch.from_numpy(self.weights[name]))
            for kept in self.optimizer.state.values():
                kept["momentum_buffer"].zero_()
        self.next = 0

    def step(self) -> None:
        """As in PyTorch's own tutorial."""
        x, y = self.batches[self.next % len(self.batches)]
        self.next += 1
        self.optimizer.zero_grad(set_to_none=True)
        self.loss = self.forward(x, y)
        self.loss.backward()
        self.optimizer.step()

    def sync(self) -> float:
        """On a CPU every call returns when it has ended."""
        return float(self.loss.detach())

    def facts(self) -> Mapping[str, Any]:
        """Nothing that the process does not tell."""
        return {"optimizer": "SGD, fused"}

    def close(self) -> None:
        """The process ends with it."""


def _tensor(array: Any, layout: Any) -> Any:
    import torch

    tensor = torch.from_numpy(array)
    if not tensor.is_floating_point():
        return tensor.long()
    return tensor.contiguous(memory_format=layout) if tensor.dim() == 4 else tensor


def module(network: Network) -> Any:
    """The network as a module whose parameters have our names."""
    from torch import fx, nn

    root, graph = nn.Module(), fx.Graph()
    values = {network.input: graph.placeholder("x")}
    made_by = {layer.output: layer.kind for layer in network.layers}
    for layer in network.layers:
        given = tuple(values[name] for name in layer.inputs)
        fresh = _may_overwrite(layer, network, made_by)
        values[layer.output] = _node(graph, root, layer, given, fresh)
    graph.output(values[network.output])
    graph.lint()
    return fx.GraphModule(root, graph)


def _may_overwrite(layer: Layer, network: Network, made_by: Mapping[str, str]) -> bool:
    first = layer.inputs[0]
    return network.uses[first] == 1 and made_by.get(first) in IN_PLACE_AFTER


def _node(graph: Any, root: Any, layer: Layer, given: tuple[Any, ...], fresh: bool) -> Any:
    import torch

    if layer.kind == "add":
        return graph.call_function(operator.iadd if fresh else operator.add, given)
    if layer.kind == "concat":
        return graph.call_function(torch.cat, (list(given), layer.settings["axis"]))
    if layer.kind == "transpose":
        return graph.call_function(torch.permute, (given[0], layer.settings["axes"]))
    part = MODULES[layer.kind](torch.nn, dict(layer.settings), fresh)
    _place(root, layer.name.split("."), part)
    out = graph.call_module(layer.name, given)
    return graph.call_function(operator.getitem, (out, 0)) if layer.kind == "lstm" else out


def _place(holder: Any, path: list[str], part: Any) -> None:
    """Put a layer where its name says, with empty modules above it."""
    import torch

    for name in path[:-1]:
        if not hasattr(holder, name):
            holder.add_module(name, torch.nn.Module())
        holder = getattr(holder, name)
    holder.add_module(path[-1], part)


def _conv(nn: Any, s: dict[str, Any], fresh: bool) -> Any:
    rest = (s["stride"], s["padding"], s["dilation"], s["groups"], s["bias"])
    return nn.Conv2d(s["channels"], s["out"], s["window"], *rest)


def _max_pool(nn: Any, s: dict[str, Any], fresh: bool) -> Any:
    return nn.MaxPool2d(s["window"], s["stride"], s["padding"], s["dilation"], ceil_mode=s["ceil"])


def _avg_pool(nn: Any, s: dict[str, Any], fresh: bool) -> Any:
    return nn.AvgPool2d(s["window"], s["stride"], s["padding"], s["ceil"], s["count_padding"])


MODULES: Mapping[str, Callable[[Any, dict[str, Any], bool], Any]] = {
    "conv": _conv,
    "linear": lambda nn, s, fresh: nn.Linear(s["channels"], s["out"], s["bias"]),
    "batch_norm": lambda nn, s, fresh: nn.BatchNorm2d(s["channels"], s["eps"], s["momentum"]),
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "mean": lambda nn, s, fresh: nn.AdaptiveAvgPool2d(1),
    "embedding": lambda nn, s, fresh: nn.Embedding(s["rows"], s["size"]),
    "lstm": lambda nn, s, fresh: nn.LSTM(s["channels"], s["out"], s["layers"], batch_first=True),
    "relu": lambda nn, s, fresh: nn.ReLU(inplace=fresh),
    "relu6": lambda nn, s, fresh: nn.ReLU6(inplace=fresh),
    "flatten": lambda nn, s, fresh: nn.Flatten(),
}
