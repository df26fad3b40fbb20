"""Pooling: one template forward, one for gradients; windows come as C expressions from the ops.

A window that covers the whole plane is computed as one long row, and an adaptive window that divides
the input evenly as a strided one: both then run in vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from pocketgrad.base.dtypes import float16
from pocketgrad.ir.core import Node, Op
from pocketgrad.kernels.spec import (
    Config,
    DeviceInfo,
    Kernel,
    KernelSource,
    Launch,
    Param,
    Rendered,
    defines,
    template,
)
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
from pocketgrad.ops.window import Adaptive, Strided, Window
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View

VW = Param("VW", (1, 2, 4, 8, 16), 1, "columns computed together")
SPAN = Param("SPAN", (0, 1, 4), 0, "vectors of a row per item; 0: the whole row")
RPT = Param("RPT", (1, 2, 4, 8, 16, 32, 64, 128, 256), 1, "rows (OWN: planes) per item")
WGS = Param("WGS", (1, 64), 1, "items per group")
OWN = Param("OWN", (0, 1), 0, "1: an item owns whole planes and adds into them")
GROUPS_PER_UNIT = 4  # enough to even out a slow core, and at least 8 (KERNELS.md)


@dataclass(frozen=True)
class Geometry:
    """Windows along both axes. ``positions``: an index is h * W + w, not the tap r * S + s."""

    rows: Window
    columns: Window
    padded: bool
    positions: bool

    @property
    def inner(self) -> tuple[int, int]:
        """Columns of the output from and to which windows are whole."""
        whole = [j for j in range(self.columns.count) if self._is_whole(j)]
        return (whole[0], whole[-1] + 1) if whole else (0, 0)

    def _is_whole(self, j: int) -> bool:
        return self.columns.taps(j) == (0, self.taps_w)

    @property
    def stride_w(self) -> int:
        """Distance of neighbouring windows along width; 0 where it varies."""
        if self.columns.count == 1:
            return 1
        return self.columns.stride if isinstance(self.columns, Strided) else 0

    @property
    def taps_w(self) -> int:
        """Taps of a whole window along width."""
        return self.columns.most

    @property
    def covers(self) -> bool:
        """Whether there is one window, over everything."""
        axes = self.rows, self.columns
        return all(
            a.count == 1 and a.step == 1 and a.extent(0, self.padded) == a.size == _seen(a)
            for a in axes
        )

    def macros(self) -> dict[str, object]:
        """What both templates need to know."""
        rows, columns = self.rows, self.columns
        tap = f"r * {self.taps_w} + s"
        if self.positions:
            tap = f"({rows.c_start('i')} + r) * {columns.size} + {columns.c_start('j')} + s"
        first_h, end_h = rows.c_taps("i")
        first_w, end_w = columns.c_taps("j")
        return {
            "OH": rows.count,
            "OW": columns.count,
            "W": columns.size,
            "DH": rows.step,
            "DW": columns.step,
            "START_H": rows.c_start("i"),
            "START_W": columns.c_start("j"),
            "FIRST_H": first_h,
            "END_H": end_h,
            "FIRST_W": first_w,
            "END_W": end_w,
            "EXTENT_H": rows.c_extent("i", self.padded),
            "EXTENT_W": columns.c_extent("j", self.padded),
            "TAP": f"({tap})",
        }


def _seen(window: Window) -> int:
    first, end = window.taps(0)
    return end - first


def _regular(window: Window) -> Window:
    if isinstance(window, Adaptive) and window.count and window.size % window.count == 0:
        k = window.size // window.count
        return Strided(window.size, window.count, k, k, 0, 0, 1)
    return window


def geometry(op: Pool, hw: tuple[int, int], joined: bool) -> Geometry:
    """Windows of an op; ``joined``: rows of the input follow each other without gaps."""
    rows, columns = (_regular(w) for w in op.windows(hw))
    positions = isinstance(op, AdaptiveMaxPool2d | AdaptiveMaxPool2dGrad)
    padded = isinstance(op, AvgPool2d | AvgPool2dGrad) and op.count_include_pad
    found = Geometry(rows, columns, padded, positions)
    if joined and found.covers and 0 not in hw:
        area = hw[0] * hw[1]
        row = Strided(1, 1, 1, 1, 0, 0, 1)
        return Geometry(row, Strided(area, 1, area, 1, 0, 0, 1), padded, positions)
    return found


def root(step: Step) -> Node | None:
    """The only node of a step; None where others were fused to it."""
    computed = [n for n in step.nodes if n.inputs]
    return computed[0] if len(computed) == 1 else None


def is_rows(view: View) -> bool:
    """Whether the last axis is contiguous."""
    return view.shape[-1] == 1 or view.strides[-1] == 1


def planes_of(view: View) -> int:
    """How many planes [H,W] there are."""
    return view.shape[0] * view.shape[1]


def share(rows: int, device: DeviceInfo) -> int:
    """The largest RPT that leaves every core several groups."""
    groups = max(8, GROUPS_PER_UNIT * device.compute_units)
    return max(v for v in RPT.values if v == 1 or v * groups <= rows)


def widest(most: int, device: DeviceInfo) -> int:
    """The widest vector of at most this many lanes; 1 on GPUs, where neighbours are other items."""
    limit = 1 if device.kind == "gpu" else min(most, max(4, device.vector_width))
    return max(v for v in VW.values if v <= max(1, limit))


def launch(source: KernelSource, args: tuple[View, ...], items: int, group: int) -> Rendered:
    """One launch over so many items, rounded up to whole groups; none where nothing is computed."""
    if not items:
        return Rendered(())
    return Rendered((Launch(source, args, (ceil(items / group) * group,), (group,)),))


class PoolForward(Kernel):
    """Max and average pooling."""

    name = "pool"
    params = (VW, SPAN, RPT, WGS)
    ops: tuple[type[Op], ...] = (MaxPool2d, AdaptiveMaxPool2d, AvgPool2d, AdaptiveAvgPool2d)

    def matches(self, step: Step) -> bool:
        node = root(step)
        if node is None or not isinstance(node.op, self.ops) or node.outputs[0] not in step.writes:
            return False
        index = step.writes.get(node.outputs[-1])
        return len(node.outputs) == 1 or index is None or index.dense

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        lanes = self._lanes(step)
        return config["VW"] <= max(1, lanes) and config["WGS"] <= device.max_work_group

    def _lanes(self, step: Step) -> int:
        """How many windows at most a vector can hold; 1 where they are not 1 or 2 elements apart."""
        _, geo, x, y = _forward(step)
        first, end = geo.inner
        apart = geo.stride_w * x.strides[3]
        return end - first if apart in (1, 2) and is_rows(y) else 1

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        _, geo, x, _ = _forward(step)
        gpu = device.kind == "gpu"
        rows = planes_of(x) * geo.rows.count
        return {
            "VW": widest(self._lanes(step), device),
            "SPAN": 1 if gpu else 0,
            "RPT": 1 if gpu else share(rows, device),
            "WGS": min(64, device.max_work_group) if gpu else 1,
        }

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        node, geo, x, y = _forward(step)
        index = step.writes.get(node.outputs[1]) if len(node.outputs) == 2 else None
        rows, columns = planes_of(x) * geo.rows.count, geo.columns.count
        segment = config["VW"] * config["SPAN"] or columns
        segments = ceil(columns / max(1, segment))
        first, end = geo.inner
        is_max = isinstance(node.op, MaxPool2d | AdaptiveMaxPool2d)
        wide = geo.columns.step * x.strides[3] == 1 and geo.taps_w >= 8 and not is_max
        macros = geo.macros() | {
            "MAX": int(is_max),
            "INDEX": int(index is not None),
            "XT": x.base.dtype.cl,
            "YT": y.base.dtype.cl,
            "ROWS": rows,
            "C": x.shape[1],
            "VW": config["VW"],
            "TVW": widest(geo.taps_w, device) if wide else 1,
            "SEG": segment,
            "SEGS": segments,
            "RPT": config["RPT"],
            "LANE": geo.stride_w * x.strides[3],
            "INNER_FIRST": first,
            "INNER_END": end,
            "TAPS_W": geo.taps_w,
            "TAPSTEP": geo.stride_w if geo.positions else 0,
        }
        macros |= _strides("X", x) | _strides("Y", y)
        args = (x, y) if index is None else (x, y, index)
        source = KernelSource(template("pool"), defines(**macros))
        return launch(source, args, segments * ceil(rows / config["RPT"]), config["WGS"])


def _forward(step: Step) -> tuple[Node, Geometry, View, View]:
    node = root(step)
    assert node is not None and isinstance(node.op, Pool)
    x, y = step.reads[node.inputs[0]], step.writes[node.outputs[0]]
    _, _, h, w = x.shape
    joined = x.strides[2] == w * x.strides[3] or h == 1
    return node, geometry(node.op, (h, w), joined), x, y


def _strides(letter: str, view: View) -> dict[str, object]:
    return {f"{letter}{a}": f"({s})" for a, s in zip("NCHW", view.strides, strict=True)}


class PoolGrad(Kernel):
    """Gradients of max and average pooling."""

    name = "pool_grad"
    params = (OWN, VW, SPAN, RPT, WGS)
    ops: tuple[type[Op], ...] = (
        MaxPool2dGrad,
        AdaptiveMaxPool2dGrad,
        AvgPool2dGrad,
        AdaptiveAvgPool2dGrad,
    )

    def matches(self, step: Step) -> bool:
        node = root(step)
        if node is None or not isinstance(node.op, self.ops):
            return False
        gx = step.writes[node.outputs[0]]
        has_index = len(node.inputs) == 2
        return is_rows(gx) and (not has_index or step.reads[node.inputs[0]].dense)

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        node, geo, ct, gx = _backward(step)
        if config["WGS"] > device.max_work_group:
            return False
        if config["OWN"]:
            owned = len(node.inputs) == 2 and gx.base.dtype is not float16
            return owned and config["SPAN"] == 0
        return config["VW"] <= max(1, _grad_lanes(geo, ct))

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        node, geo, ct, gx = _backward(step)
        gpu = device.kind == "gpu"
        lanes = _grad_lanes(geo, ct)
        own = len(node.inputs) == 2 and gx.base.dtype is not float16 and not gpu and lanes == 1
        own = own and planes_of(gx) >= 8
        rows = planes_of(gx) * (1 if own else geo.rows.size)
        return {
            "OWN": int(own),
            "VW": widest(16 if own else lanes, device),
            "SPAN": 1 if gpu else 0,
            "RPT": 1 if gpu else share(rows, device),
            "WGS": min(64, device.max_work_group) if gpu else 1,
        }

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        node, geo, ct, gx = _backward(step)
        has_index = len(node.inputs) == 2
        columns = geo.columns.size
        rows = planes_of(gx) * geo.rows.size
        segment = config["VW"] * config["SPAN"] or columns
        segments = ceil(columns / max(1, segment))
        items = ceil((planes_of(gx) if config["OWN"] else rows) / config["RPT"])
        macros = geo.macros() | _readers(geo, config["VW"])
        macros |= {
            "OWN": config["OWN"],
            "MAX": int(has_index),
            "CT": ct.base.dtype.cl,
            "XT": gx.base.dtype.cl,
            "H": geo.rows.size,
            "C": gx.shape[1],
            "ROWS": rows,
            "SEG": segment,
            "SEGS": segments,
            "RPT": config["RPT"],
            "PAIRS": int(_is_pairs(geo) and is_rows(ct) and config["VW"] >= 4),
            "SAME": int(_is_same(geo) and not has_index),
        }
        macros |= _strides("C", ct) | _strides("G", gx)
        args = (step.reads[node.inputs[0]], ct, gx) if has_index else (ct, gx)
        source = KernelSource(template("pool_grad"), defines(**macros))
        return launch(source, args, items * (1 if config["OWN"] else segments), config["WGS"])


def _backward(step: Step) -> tuple[Node, Geometry, View, View]:
    node = root(step)
    assert node is not None and isinstance(node.op, Pool)
    ct, gx = step.reads[node.inputs[-1]], step.writes[node.outputs[0]]
    _, _, h, w = gx.shape
    return node, geometry(node.op, (h, w), gx.strides[2] == w or h == 1), ct, gx


def _is_pairs(geo: Geometry) -> bool:
    return geo.stride_w == geo.taps_w == 2 and geo.columns.step == 1


def _is_same(geo: Geometry) -> bool:
    return geo.columns.count == 1 and geo.columns.step == 1 and _seen(geo.columns) == geo.columns.size


def _grad_lanes(geo: Geometry, ct: View) -> int:
    if _is_pairs(geo) and is_rows(ct):
        first, end = geo.inner
        return 2 * (end - first)
    return geo.columns.size if _is_same(geo) else 1


def _readers(geo: Geometry, vw: int) -> dict[str, object]:
    """Which windows read an element, and the tap of an index."""
    from_h, past_h = geo.rows.c_readers("h")
    from_w, past_w = geo.columns.c_readers("w")
    tap_r, tap_s, lanes = f"at / {geo.taps_w}", f"at % {geo.taps_w}", f"(LANE_NUMBERS({vw}) & 1)"
    if geo.positions:
        tap_r, tap_s = f"at / {geo.columns.size} - first_h", f"at % {geo.columns.size} - first_w"
        lanes = f"LANE_NUMBERS({vw})"
    first, end = geo.inner
    start = geo.columns.start(0)
    return {
        "VW": vw,
        "HALF_VW": max(1, vw // 2),
        "FROM_H": from_h,
        "PAST_H": past_h,
        "FROM_W": from_w,
        "PAST_W": past_w,
        "TAP_R": f"({tap_r})",
        "TAP_S": f"({tap_s})",
        "TAP_LANES": lanes,
        "INNER_FIRST": 2 * first + start,
        "INNER_END": 2 * end + start,
    }
