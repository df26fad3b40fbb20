"""JAX: one jitted function for the whole step, its state donated; images lie N H W C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pocketgrad.bench.api import Variant
from pocketgrad.bench.network import Layer, Network, ends
from pocketgrad.bench.task import NotWrittenError, Task

REQUIRES = ("jax",)
VARIANTS = (Variant("jit", "jax.jit of forward, backward and update"),)
BUFFERS = ("running_mean", "running_var")


def version() -> str:
    """Of the installed JAX."""
    import jax

    return str(jax.__version__)


def open_session(task: Task, variant: Variant) -> JaxSession:
    """Compiled at the first step."""
    return JaxSession(task)


class JaxSession:
    """State as dictionaries of arrays, replaced by each step."""

    def __init__(self, task: Task) -> None:
        import jax
        import jax.numpy as jnp

        self.jax, self.jnp, self.weights = jax, jnp, task.weights
        self.kinds = {layer.name: layer.kind for layer in task.network.layers}
        layout = (0, 2, 3, 1) if len(task.network.shape) == 4 else None
        self.batches = [
            (jnp.asarray(x if layout is None else x.transpose(layout)), jnp.asarray(y))
            for x, y in task.batches
        ]
        self.run = jax.jit(step_of(task), donate_argnums=(0, 1, 2))
        self.loss: Any = None
        self.reset()

    def reset(self) -> None:
        """New arrays; the compiled step stays."""
        jnp = self.jnp
        self.parameters: dict[str, Any] = {}
        self.buffers: dict[str, Any] = {}
        for name in self.weights:
            owner, _, what = name.rpartition(".")
            array = self.weights[name]
            if self.kinds[owner] == "conv" and what == "weight":
                array = array.transpose(2, 3, 1, 0)
            if what in BUFFERS:
                self.buffers[name] = jnp.asarray(array)
            elif what != "num_batches_tracked":  # counted by nobody who has a momentum
                self.parameters[name] = jnp.asarray(array)
        self.momenta = {name: jnp.zeros_like(p) for name, p in self.parameters.items()}
        self.next = 0
        self.jax.block_until_ready((self.parameters, self.momenta, self.buffers))

    def step(self) -> None:
        """Dispatched; JAX does not wait."""
        x, y = self.batches[self.next % len(self.batches)]
        self.next += 1
        self.parameters, self.momenta, self.buffers, self.loss = self.run(
            self.parameters, self.momenta, self.buffers, x, y
        )

    def sync(self) -> float:
        """Waits for the update, too."""
        self.jax.block_until_ready((self.parameters, self.momenta, self.buffers))
        return float(self.loss)

    def facts(self) -> Mapping[str, Any]:
        """Where it computes."""
        return {"device": str(self.jax.devices()[0])}

    def close(self) -> None:
        """The process ends with it."""


def step_of(task: Task) -> Callable[..., Any]:
    """Forward, backward, and SGD with momentum as PyTorch defines it, as a pure function."""
    import jax
    import jax.numpy as jnp

    network, work = task.network, task.workload
    for layer in network.layers:
        if layer.kind not in LAYERS:
            raise NotWrittenError(f"{layer.kind} of '{layer.name}' is not written for JAX")

    def loss_of(parameters: Any, buffers: Any, x: Any, y: Any) -> Any:
        scores, new = forward(network, parameters, buffers, x)
        logs = jax.nn.log_softmax(scores, axis=1)
        return -jnp.mean(jnp.take_along_axis(logs, y[:, None], 1)), new

    def step(parameters: Any, momenta: Any, buffers: Any, x: Any, y: Any) -> Any:
        grad = jax.value_and_grad(loss_of, has_aux=True)
        (loss, new), gradients = grad(parameters, buffers, x, y)
        momenta = {n: work.momentum * m + gradients[n] for n, m in momenta.items()}
        parameters = {n: p - work.lr * momenta[n] for n, p in parameters.items()}
        return parameters, momenta, new, loss

    return step


def forward(network: Network, parameters: Any, buffers: Any, x: Any) -> Any:
    """The scores, and the new running statistics."""
    arrays, new = {**parameters, **buffers}, dict(buffers)

    def apply(layer: Layer, given: list[Any]) -> Any:
        own = {
            what: arrays[f"{layer.name}.{what}"]
            for what in WEIGHTS.get(layer.kind, ())
            if f"{layer.name}.{what}" in arrays
        }
        if layer.kind == "lstm":
            own = {n.rpartition(".")[2]: a for n, a in arrays.items() if _of(n, layer.name)}
        out, updates = LAYERS[layer.kind](layer, given, own)
        new.update({f"{layer.name}.{what}": array for what, array in updates.items()})
        return out

    return network.run(x, apply), new


def _of(name: str, layer: str) -> bool:
    return name.rpartition(".")[0] == layer


WEIGHTS: Mapping[str, tuple[str, ...]] = {
    "conv": ("weight", "bias"),
    "linear": ("weight", "bias"),
    "embedding": ("weight",),
    "batch_norm": ("weight", "bias", *BUFFERS),
}
Own = Mapping[str, Any]


def _conv(layer: Layer, given: list[Any], own: Own) -> Any:
    from jax import lax

    s = layer.settings
    y = lax.conv_general_dilated(
        given[0],
        own["weight"],
        s["stride"],
        [(n, n) for n in s["padding"]],
        rhs_dilation=s["dilation"],
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=s["groups"],
    )
    return (y + own["bias"] if "bias" in own else y), {}


def _linear(layer: Layer, given: list[Any], own: Own) -> Any:
    y = given[0] @ own["weight"].T
    return (y + own["bias"] if "bias" in own else y), {}


def _batch_norm(layer: Layer, given: list[Any], own: Own) -> Any:
    import jax.numpy as jnp
    from jax import lax

    (x,), s = given, layer.settings
    mean = jnp.mean(x, (0, 1, 2))
    variance = jnp.mean(jnp.square(x - mean), (0, 1, 2))
    y = (x - mean) * (own["weight"] * lax.rsqrt(variance + s["eps"])) + own["bias"]
    n, share = x.size // x.shape[-1], s["momentum"]
    seen = {"running_mean": mean, "running_var": variance * (n / max(n - 1, 1))}
    return y, {
        what: (1 - share) * own[what] + share * lax.stop_gradient(new) for what, new in seen.items()
    }


def _max_pool(layer: Layer, given: list[Any], own: Own) -> Any:
    import jax.numpy as jnp
    from jax import lax

    s = layer.settings
    if s["dilation"] != (1, 1):
        raise NotWrittenError("dilated pooling is not written for JAX")
    padding = ((0, 0), *ends(layer, given[0].shape[1:3]), (0, 0))
    window, stride = (1, *s["window"], 1), (1, *s["stride"], 1)
    return lax.reduce_window(given[0], -jnp.inf, lax.max, window, stride, padding), {}


def _avg_pool(layer: Layer, given: list[Any], own: Own) -> Any:
    from jax import lax

    s = layer.settings
    if any(s["padding"]) or s["ceil"]:
        raise NotWrittenError("padded average pooling is not written for JAX")
    window, stride = (1, *s["window"], 1), (1, *s["stride"], 1)
    total = lax.reduce_window(given[0], 0.0, lax.add, window, stride, "VALID")
    return total / (s["window"][0] * s["window"][1]), {}


def _flatten(layer: Layer, given: list[Any], own: Own) -> Any:
    (x,) = given
    x = x.transpose(0, 3, 1, 2) if x.ndim == 4 else x
    return x.reshape(layer.shape), {}


def _concat(layer: Layer, given: list[Any], own: Own) -> Any:
    import jax.numpy as jnp

    axis = layer.settings["axis"]
    moved = {0: 0, 1: 3, 2: 1, 3: 2}[axis] if given[0].ndim == 4 else axis
    return jnp.concatenate(given, moved), {}


def _lstm(layer: Layer, given: list[Any], own: Own) -> Any:
    import jax
    import jax.numpy as jnp

    x = given[0].transpose(1, 0, 2)
    for i in range(layer.settings["layers"]):
        weight = own[f"weight_hh_l{i}"].T
        fed = x @ own[f"weight_ih_l{i}"].T + own[f"bias_ih_l{i}"] + own[f"bias_hh_l{i}"]
        first = jnp.zeros((x.shape[1], layer.settings["out"]), x.dtype)

        def cell(state: Any, row: Any, weight: Any = weight) -> Any:
            h, c = state
            a, f, g, o = jnp.split(row + h @ weight, 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(a) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        _, x = jax.lax.scan(cell, (first, first), fed)
    return x.transpose(1, 0, 2), {}


def _mean(layer: Layer, given: list[Any], own: Own) -> Any:
    return given[0].mean((1, 2), keepdims=True), {}


def _transpose(layer: Layer, given: list[Any], own: Own) -> Any:
    if given[0].ndim == 4:
        raise NotWrittenError("transposed images are not written for JAX")
    return given[0].transpose(layer.settings["axes"]), {}


LAYERS: Mapping[str, Callable[[Layer, list[Any], Own], Any]] = {
    "conv": _conv,
    "linear": _linear,
    "batch_norm": _batch_norm,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "mean": _mean,
    "embedding": lambda layer, given, own: (own["weight"][given[0]], {}),
    "lstm": _lstm,
    "concat": _concat,
    "transpose": _transpose,
    "relu": lambda layer, given, own: (given[0].clip(0), {}),
    "relu6": lambda layer, given, own: (given[0].clip(0, 6), {}),
    "flatten": _flatten,
    "add": lambda layer, given, own: (given[0] + given[1], {}),
}
