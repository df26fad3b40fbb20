"""Pooling: one template forward, one for gradients; windows come as C expressions from the ops."""

from __future__ import annotations

from pocketgrad.base.dtypes import float16
from pocketgrad.ir.core import Node, Op
from pocketgrad.kernels.lines import PARAMS, Lines, only_node, widest
from pocketgrad.kernels.spec import (
    Config,
    DeviceInfo,
    Kernel,
    KernelSource,
    Param,
    Rendered,
    defines,
    template,
)
from pocketgrad.kernels.windows import Geometry, geometry, seen
from pocketgrad.ops.average import (
    AdaptiveAvgPool2d,
    AdaptiveAvgPool2dGrad,
    AvgPool2d,
    AvgPool2dGrad,
)
from pocketgrad.ops.pool import (
    AdaptiveMaxPool2d,
    AdaptiveMaxPool2dGrad,
    MaxPool2d,
    MaxPool2dGrad,
    Pool,
)
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View

OWN = Param("OWN", (0, 1), 0, "1: an item owns RPT whole planes and adds into them")


def is_rows(view: View) -> bool:
    """Whether the last axis is contiguous."""
    return view.shape[-1] == 1 or view.strides[-1] == 1


def planes_of(view: View) -> int:
    """How many planes [H,W] there are."""
    return view.shape[0] * view.shape[1]


class PoolForward(Kernel):
    """Max and average pooling."""

    name = "pool"
    params = PARAMS
    ops: tuple[type[Op], ...] = (MaxPool2d, AdaptiveMaxPool2d, AvgPool2d, AdaptiveAvgPool2d)

    def matches(self, step: Step) -> bool:
        node = only_node(step)
        if node is None or not isinstance(node.op, self.ops):
            return False
        index = step.writes.get(node.outputs[-1])
        return len(node.outputs) == 1 or index is None or index.dense

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        lanes = self._lanes(step)
        return config["VW"] <= max(1, lanes) and config["WGS"] <= device.max_work_group

    def _lanes(self, step: Step) -> int:
        """How many windows a vector can hold; 1 unless they are 1 or 2 elements apart."""
        _, geo, x, y = _forward(step)
        first, end = geo.inner
        apart = geo.stride_w * x.strides[3]
        return end - first if apart in (1, 2) and (y is None or is_rows(y)) else 1

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        _, geo, x, _ = _forward(step)
        return _lines(geo, x).defaults(self._lanes(step), device)

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        node, geo, x, y = _forward(step)
        index = step.writes.get(node.outputs[1]) if len(node.outputs) == 2 else None
        lines = _lines(geo, x)
        first, end = geo.inner
        is_max = isinstance(node.op, MaxPool2d | AdaptiveMaxPool2d)
        wide = geo.columns.step * x.strides[3] == 1 and geo.taps_w >= 8 and not is_max
        macros = geo.macros() | {
            "MAX": int(is_max),
            "VALUE": int(y is not None),
            "INDEX": int(index is not None),
            "XT": x.base.dtype.cl,
            "C": x.shape[1],
            "TVW": widest(geo.taps_w, device) if wide else 1,
            "LANE": geo.stride_w * x.strides[3],
            "INNER_FIRST": first,
            "INNER_END": end,
            "TAPS_W": geo.taps_w,
            "TAPSTEP": geo.stride_w if geo.positions else 0,
        }
        macros |= lines.macros(config) | _strides("X", x)
        if y is not None:
            macros |= {"YT": y.base.dtype.cl} | _strides("Y", y)
        args = tuple(v for v in (x, y, index) if v is not None)
        source = KernelSource(template("pool"), defines(**macros))
        return Rendered(lines.launches(source, args, config))


def _lines(geo: Geometry, x: View) -> Lines:
    return Lines(planes_of(x) * geo.rows.count, geo.columns.count)


def _forward(step: Step) -> tuple[Node, Geometry, View, View | None]:
    node = only_node(step)
    assert node is not None
    assert isinstance(node.op, Pool)
    x, y = step.reads[node.inputs[0]], step.writes.get(node.outputs[0])
    _, _, h, w = x.shape
    joined = x.strides[2] == w * x.strides[3] or h == 1
    return node, geometry(node.op, (h, w), joined), x, y


def _strides(letter: str, view: View) -> dict[str, object]:
    return {f"{letter}{a}": f"({s})" for a, s in zip("NCHW", view.strides, strict=True)}


class PoolGrad(Kernel):
    """Gradients of max and average pooling."""

    name = "pool_grad"
    params = (OWN, *PARAMS)
    ops: tuple[type[Op], ...] = (
        MaxPool2dGrad,
        AdaptiveMaxPool2dGrad,
        AvgPool2dGrad,
        AdaptiveAvgPool2dGrad,
    )

    def matches(self, step: Step) -> bool:
        node = only_node(step)
        if node is None or not isinstance(node.op, self.ops):
            return False
        gx = step.writes[node.outputs[0]]
        has_index = len(node.inputs) == 2
        return is_rows(gx) and (not has_index or step.reads[node.inputs[0]].dense)

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        _, geo, ct, gx = _backward(step)
        if config["WGS"] > device.max_work_group:
            return False
        if config["OWN"]:
            return gx.base.dtype is not float16 and config["SPAN"] == 0
        return config["VW"] <= max(1, _grad_lanes(geo, ct))

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        _, geo, ct, gx = _backward(step)
        lanes = _grad_lanes(geo, ct)
        owned = gx.base.dtype is not float16 and planes_of(gx) >= 8 and geo.taps > 1
        if owned and lanes == 1 and device.kind == "cpu":
            return {"OWN": 1, **_work(geo, gx, True).defaults(16, device)}
        return {"OWN": 0, **_work(geo, gx, False).defaults(lanes, device)}

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        node, geo, ct, gx = _backward(step)
        has_index = len(node.inputs) == 2
        work = _work(geo, gx, bool(config["OWN"]))
        macros = geo.macros() | _readers(geo, config["VW"]) | work.macros(config)
        macros |= {
            "OWN": config["OWN"],
            "MAX": int(has_index),
            "CT": ct.base.dtype.cl,
            "XT": gx.base.dtype.cl,
            "H": geo.rows.size,
            "C": gx.shape[1],
            "PAIRS": int(_is_pairs(geo) and is_rows(ct) and config["VW"] >= 4),
            "SLIDE": int(_is_slide(geo) and is_rows(ct) and config["VW"] >= 2),
            "SAME": int(_is_same(geo) and not has_index),
        }
        macros |= _strides("C", ct) | _strides("G", gx)
        args = (step.reads[node.inputs[0]], ct, gx) if has_index else (ct, gx)
        source = KernelSource(template("pool_grad"), defines(**macros))
        return Rendered(work.launches(source, args, config))


def _work(geo: Geometry, gx: View, owned: bool) -> Lines:
    """Planes as lines of one, or the rows of gx."""
    planes = planes_of(gx)
    return Lines(planes, 1) if owned else Lines(planes * geo.rows.size, geo.columns.size)


def _backward(step: Step) -> tuple[Node, Geometry, View, View]:
    node = only_node(step)
    assert node is not None
    assert isinstance(node.op, Pool)
    ct, gx = step.reads[node.inputs[-1]], step.writes[node.outputs[0]]
    _, _, h, w = gx.shape
    return node, geometry(node.op, (h, w), gx.strides[2] == w or h == 1), ct, gx


def _is_pairs(geo: Geometry) -> bool:
    return geo.stride_w == geo.taps_w == 2 and geo.columns.step == 1


def _is_slide(geo: Geometry) -> bool:
    return geo.stride_w == 1 and geo.columns.count > 1


def _is_same(geo: Geometry) -> bool:
    columns = geo.columns
    return columns.count == 1 and columns.step == 1 and seen(columns) == columns.size


def _inner(geo: Geometry) -> tuple[int, int]:
    """Columns of gx that only whole windows read."""
    first, end = geo.inner
    start, reach = geo.columns.start(0), (geo.taps_w - 1) * geo.columns.step
    if _is_pairs(geo):
        return 2 * first + start, 2 * end + start
    return first + start + reach, end + start


def _grad_lanes(geo: Geometry, ct: View) -> int:
    if (_is_pairs(geo) or _is_slide(geo)) and is_rows(ct):
        first, end = _inner(geo)
        return max(1, end - first)
    # PoCL 3.1's compiler crashes on vstore_half8 and wider of one number in all lanes.
    most = 4 if ct.base.dtype is float16 else 16
    return min(most, geo.columns.size) if _is_same(geo) else 1


def _readers(geo: Geometry, vw: int) -> dict[str, object]:
    """Which windows read an element, and the tap of an index."""
    tap_r, tap_s, lanes = f"at / {geo.taps_w}", f"at % {geo.taps_w}", f"(LANE_NUMBERS({vw}) & 1)"
    if geo.positions:
        tap_r, tap_s = f"at / {geo.columns.size} - first_h", f"at % {geo.columns.size} - first_w"
        lanes = f"LANE_NUMBERS({vw})"
    elif _is_slide(geo):
        lanes = "0"
    first, end = _inner(geo)
    return geo.readers() | {
        "HALF_VW": max(1, vw // 2),
        "TAP_R": f"({tap_r})",
        "TAP_S": f"({tap_s})",
        "TAP_LANES": lanes,
        "INNER_FIRST": first,
        "INNER_END": end,
        "FIRST_START": f"({geo.columns.start(0)})",
        "TAPS_W": geo.taps_w,
    }
