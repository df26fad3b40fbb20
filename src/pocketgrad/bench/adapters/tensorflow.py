"""TensorFlow: one tf.function for the whole step, with and without XLA; images lie N H W C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pocketgrad.bench.api import Variant
from pocketgrad.bench.network import Layer, ends
from pocketgrad.bench.task import NotWrittenError, Task

REQUIRES = ("tensorflow",)
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}
VARIANTS = (
    Variant("function", "tf.function", env=QUIET),
    Variant("xla", "tf.function compiled by XLA", env=QUIET),
)


def version() -> str:
    """Of the installed TensorFlow."""
    import tensorflow

    return str(tensorflow.__version__)


def open_session(task: Task, variant: Variant) -> TensorflowSession:
    """Traced and compiled at the first step."""
    return TensorflowSession(task, variant.name == "xla")


class TensorflowSession:
    """Variables, updated in place by the function."""

    def __init__(self, task: Task, compiled: bool) -> None:
        import tensorflow as tf

        for layer in task.network.layers:
            if layer.kind not in LAYERS:
                raise NotWrittenError(
                    f"{layer.kind} of '{layer.name}' is not written for TensorFlow"
                )
        tf.config.threading.set_intra_op_parallelism_threads(task.threads)
        self.tf, self.weights = tf, task.weights
        self.kinds = {x.name: x for x in task.network.layers}
        self.trained: dict[str, Any] = {}
        self.buffers: dict[str, Any] = {}
        for name in task.weights:
            if name.endswith("num_batches_tracked"):
                continue  # counted by nobody who has a momentum
            held = self.buffers if "running_" in name else self.trained
            held[name] = tf.Variable(self._array(name), trainable=held is self.trained)
        self.momenta = [tf.Variable(tf.zeros_like(v)) for v in self.trained.values()]
        layout = (0, 2, 3, 1) if len(task.network.shape) == 4 else None
        self.batches = [
            (tf.constant(x if layout is None else x.transpose(layout)), tf.constant(y))
            for x, y in task.batches
        ]
        self.run = tf.function(self._train(task), jit_compile=compiled)
        self.next = 0
        self.loss: Any = None

    def _array(self, name: str) -> Any:
        array = self.weights[name]
        layer = self.kinds[name.rpartition(".")[0]]
        if layer.kind != "conv" or array.ndim != 4:
            return array
        array = array.transpose(2, 3, 1, 0)  # R S C K
        if _depthwise(layer):
            array = array.transpose(0, 1, 3, 2)
        return array

    def _train(self, task: Task) -> Callable[..., Any]:
        tf, work, network = self.tf, task.workload, task.network
        arrays = {**self.trained, **self.buffers}
        variables = list(self.trained.values())

        def apply(layer: Layer, given: list[Any]) -> Any:
            start = f"{layer.name}."
            own = {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
            return LAYERS[layer.kind](layer, given, own)

        def train(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                scores = network.run(x, apply)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, scores))
            for v, m, g in zip(
                variables, self.momenta, tape.gradient(loss, variables), strict=True
            ):
                m.assign(work.momentum * m + g)
                v.assign_sub(work.lr * m)
            return loss

        return train

    def reset(self) -> None:
        """Into the same variables."""
        for name, variable in (*self.trained.items(), *self.buffers.items()):
            variable.assign(self._array(name))
        for momentum in self.momenta:
            momentum.assign(self.tf.zeros_like(momentum))
        self.next = 0

    def step(self) -> None:
        """One call of the function."""
        x, y = self.batches[self.next % len(self.batches)]
        self.next += 1
        self.loss = self.run(x, y)

    def sync(self) -> float:
        """Reads a variable, too: its update has ended then."""
        self.momenta[0].numpy()
        return float(self.loss.numpy())

    def facts(self) -> Mapping[str, Any]:
        """Nothing that the process does not tell."""
        return {}

    def close(self) -> None:
        """The process ends with it."""


Own = Mapping[str, Any]


def _depthwise(layer: Layer) -> bool:
    s = layer.settings
    return bool(s["groups"] == s["channels"] == s["out"] and s["groups"] > 1)


def _conv(layer: Layer, given: list[Any], own: Own) -> Any:
    import tensorflow as tf

    s, (x,) = layer.settings, given
    padding = [[0, 0], *([n, n] for n in s["padding"]), [0, 0]]
    if _depthwise(layer):
        x = tf.pad(x, padding) if any(s["padding"]) else x
        y = tf.nn.depthwise_conv2d(
            x, own["weight"], (1, *s["stride"], 1), "VALID", dilations=s["dilation"]
        )
    elif s["groups"] > 1:
        raise NotWrittenError("grouped convolutions have no gradient in TensorFlow on a CPU")
    else:
        y = tf.nn.conv2d(x, own["weight"], s["stride"], padding, dilations=s["dilation"])
    return tf.nn.bias_add(y, own["bias"]) if "bias" in own else y


def _linear(layer: Layer, given: list[Any], own: Own) -> Any:
    import tensorflow as tf

    y = tf.matmul(given[0], own["weight"], transpose_b=True)
    return tf.nn.bias_add(y, own["bias"]) if "bias" in own else y


def _batch_norm(layer: Layer, given: list[Any], own: Own) -> Any:
    import tensorflow as tf

    s = layer.settings
    y, mean, variance = tf.compat.v1.nn.fused_batch_norm(
        given[0], own["weight"], own["bias"], epsilon=s["eps"], is_training=True
    )
    for what, new in (("running_mean", mean), ("running_var", variance)):
        old = own[what]
        old.assign_add(s["momentum"] * (tf.stop_gradient(new) - old))
    return y


def _max_pool(layer: Layer, given: list[Any], own: Own) -> Any:
    import tensorflow as tf

    s, (x,) = layer.settings, given
    if s["dilation"] != (1, 1):
        raise NotWrittenError("dilated pooling is not written for TensorFlow")
    sides = ends(layer, tuple(x.shape[1:3]))
    if any(map(any, sides)):
        x = tf.pad(x, [[0, 0], *sides, [0, 0]], constant_values=x.dtype.min)
    return tf.nn.max_pool2d(x, s["window"], s["stride"], "VALID")


def _avg_pool(layer: Layer, given: list[Any], own: Own) -> Any:
    import tensorflow as tf

    s = layer.settings
    if any(s["padding"]) or s["ceil"]:
        raise NotWrittenError("padded average pooling is not written for TensorFlow")
    return tf.nn.avg_pool2d(given[0], s["window"], s["stride"], "VALID")


def _flatten(layer: Layer, given: list[Any], own: Own) -> Any:
    import tensorflow as tf

    (x,) = given
    return tf.reshape(tf.transpose(x, (0, 3, 1, 2)) if len(x.shape) == 4 else x, layer.shape)


def _concat(layer: Layer, given: list[Any], own: Own) -> Any:
    import tensorflow as tf

    axis = layer.settings["axis"]
    moved = {0: 0, 1: 3, 2: 1, 3: 2}[axis] if len(given[0].shape) == 4 else axis
    return tf.concat(given, moved)


def _mean(layer: Layer, given: list[Any], own: Own) -> Any:
    import tensorflow as tf

    return tf.reduce_mean(given[0], (1, 2), keepdims=True)


def _relu(layer: Layer, given: list[Any], own: Own) -> Any:
    import tensorflow as tf

    return tf.nn.relu6(given[0]) if layer.kind == "relu6" else tf.nn.relu(given[0])


LAYERS: Mapping[str, Callable[[Layer, list[Any], Own], Any]] = {
    "conv": _conv,
    "linear": _linear,
    "batch_norm": _batch_norm,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "mean": _mean,
    "concat": _concat,
    "relu": _relu,
    "relu6": _relu,
    "flatten": _flatten,
    "add": lambda layer, given, own: given[0] + given[1],
}
