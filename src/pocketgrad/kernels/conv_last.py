"""Convolution and its gradient for the input of images that lie channels-last, one template.

Lanes run along the output channels; a tile of pixels by channels stays in registers. The gradient
for the input is a convolution of dy with channels exchanged, phase by phase, as in conv.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import ceil, gcd, prod

from pocketgrad.base.dtypes import float32
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.kernels.conv import Problem, Taps, backward, forward
from pocketgrad.kernels.conv_tile import REGISTERS, Tile, best_tile
from pocketgrad.kernels.epilogue import Store, storing
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
from pocketgrad.kernels.tiling import (
    VW,
    groups,
    index_type,
    launch_size,
    root,
    rooted,
)
from pocketgrad.ops.conv import Conv, Conv2d, Conv2dGradInput
from pocketgrad.ops.source import Constant
from pocketgrad.plan.domain import SOURCES
from pocketgrad.plan.layout import readable_last
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, last, whole

PIECES = (8, 4, 2, 1)  # widths in which the end of the channels is stored
ITEM_WORK = 64_000_000  # multiplications of an item that end soon enough to even out cores
LONG_ROW = 256  # floats, 1 KiB: multiples of it alias
WIDE = 16  # lanes of the launch that fills a panel


BLK = Param("BLK", (1, 4, 16, 64, 256), 1, "pixel tiles of an item")
KTS = Param("KTS", (1, 2, 4, 16, 64), 1, "channel tiles of an item")


class ConvLastKernel(Kernel):
    """Channels-last images (a first layer's may lie anyhow), weights anywhere; any geometry."""

    name = "conv_last"
    far = True
    params = (
        VW,
        Param("NV", (1, 2, 3, 4, 5, 6, 7), 1, "vectors of channels of a tile"),
        Param("TW", (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14), 1, "pixels of a tile along a row"),
        Param("TN", (1, 2, 3, 4, 6, 8, 12), 1, "images of a tile"),
        BLK,
        KTS,
        Param("PANEL", (0, 1), 1, "1: weights are first copied as they will be read"),
        Param("WGS", (1, 64), 1, "items of a work-group; 1 suits CPUs"),
    )

    def matches(self, step: Step) -> bool:
        """One of the two ops, elementwise work on its result, all images channels-last."""
        if not rooted(step, Conv2d, Conv2dGradInput):
            return False
        node = root(step)
        images = [v for v in step.writes.values() if len(v.shape) == 4]
        return readable_last(node, 0, step.reads[node.inputs[0]]) and all(
            v.pitch is not None for v in images
        )

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        """Tiles that the problem has and registers hold; without a panel, weights in vectors."""
        if config["WGS"] > device.max_work_group:
            return False
        tile = Tile(config["VW"], config["NV"], config["TW"], config["TN"])
        if tile.registers > REGISTERS:
            return False
        problems = self.problems(step)
        if not config["PANEL"] and not all(_direct(step, p, config["VW"]) for p in problems):
            return False
        return all(config["TW"] <= p.columns.count and config["TN"] <= p.n for p in problems)

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        """The tile that computes least beyond what is wanted, items enough for all cores."""
        problems = self.problems(step)
        largest = max(problems, key=_work)
        if device.kind == "gpu":
            vw = 4 if _direct(step, largest, 4) else 1
            panel = int(not _direct(step, largest, vw))
            return {
                "VW": vw, "NV": 1, "TW": 1, "TN": 1, "BLK": 1, "KTS": 1, "PANEL": panel, "WGS": 64,
            }  # fmt: skip
        width = max(4, device.vector_width)
        least = min((p.columns.count for p in problems), default=1), largest.n
        tile = best_tile(largest, width, least)
        direct = all(_direct(step, p, tile.vw) and not _aliased(step, p) for p in problems)
        blk, kts = _shares(largest, tile, groups(device, _work(largest)))
        return {
            "VW": tile.vw, "NV": tile.nv, "TW": tile.tw, "TN": tile.tn,
            "BLK": blk, "KTS": kts, "PANEL": int(not direct), "WGS": 1,
        }  # fmt: skip

    def problems(self, step: Step) -> list[Problem]:
        """What is to be launched; one tap at every pixel makes all pixels one row."""
        node = root(step)
        x, w = (step.reads[v] for v in node.inputs)
        written = node.outputs[0].shape
        assert isinstance(node.op, Conv)
        if isinstance(node.op, Conv2dGradInput):
            found = backward(node.op, x.shape, w.shape, written)
        else:
            found = [forward(node.op, x.shape, w.shape, written)]
        return [_flat(p) if x.pitch is not None else p for p in found]

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        """One launch, or one for each phase of a strided gradient; before them the panel."""
        x, w = (step.reads[v] for v in root(step).inputs)
        problems = [p for p in self.problems(step) if p.n and p.outputs]
        if not problems:
            return Rendered(())
        if not config["PANEL"] or not w.base.type.size:
            return Rendered(tuple(_launch(step, p, (x, w), config) for p in problems))
        pack = _pack(problems[0], w, config, device)
        panel = pack.args[1]
        rest = (_launch(step, p, (x, panel), config) for p in problems)
        return Rendered((pack, *rest), (panel.base,))


def _work(p: Problem) -> int:
    """Multiplications."""
    pixels = p.n * p.rows.count * p.columns.count
    return pixels * p.groups * p.outputs * max(1, p.depth)


def _flat(p: Problem) -> Problem:
    """The same with all pixels of all images on one row, where every pixel has but its own tap."""
    for taps in (p.rows, p.columns):
        if (taps.number, taps.stride, taps.first, taps.y_step) != (1, 1, 0, 1):
            return p
        if taps.count != taps.size:
            return p
    pixels = p.n * prod(p.plane)
    one = Taps(1, 1, 1, 0)
    return replace(
        p, n=min(1, p.n), rows=one, columns=replace(p.columns, size=pixels, count=pixels)
    )


def _direct(step: Step, p: Problem, width: int) -> bool:
    """Whether weights can be read as vectors where they lie."""
    w = step.reads[root(step).inputs[1]]
    stride = w.strides[1 if p.exchanged else 0]
    return p.outputs % width == 0 and (stride == 1 or width == 1)


def _aliased(step: Step, p: Problem) -> bool:
    """Whether rows of weights meet in few sets of a cache, and are walked by many taps."""
    w = step.reads[root(step).inputs[1]]
    stride = w.strides[0 if p.exchanged else 1]
    return stride >= LONG_ROW and stride % LONG_ROW == 0 and w.shape[2] * w.shape[3] > 1


def _shares(p: Problem, tile: Tile, enough: int) -> tuple[int, int]:
    """How many tiles of pixels and of channels an item has: few large items that keep all busy."""
    tiles, channels = tile.pixel_tiles(p), tile.channel_tiles(p)
    per_tile = tile.pixels * tile.channels * max(1, p.depth)
    kts = max(k for k in KTS.values if k == 1 or k <= channels)
    while True:
        shares = p.groups * ceil(channels / kts)
        blk = max(
            b
            for b in BLK.values
            if b == 1 or (shares * ceil(tiles / b) >= enough and b * kts * per_tile <= ITEM_WORK)
        )
        if shares * ceil(tiles / blk) >= enough or kts == 1:
            return blk, kts
        kts = max(k for k in KTS.values if k < kts)


def _pack(p: Problem, w: View, config: Config, device: DeviceInfo) -> Launch:
    """Fill a panel of weights."""
    kb, (r, s) = config["NV"] * config["VW"], w.shape[2:]
    tiles = ceil(p.outputs / kb)
    panel = Value(TensorType((p.groups, tiles, r, s, p.inputs, kb), float32), "panel")
    width = WIDE if device.kind == "cpu" and kb % WIDE == 0 else 1
    items = p.groups * r * s * tiles * (kb // width) * ceil(p.inputs / width)
    macros = defines(
        TT=w.base.dtype.cl,
        G=p.groups,
        KG=p.outputs,
        CG=p.inputs,
        R=r,
        S=s,
        KB=kb,
        **_weight_strides(p, w),
        VW=width,
        WGS=config["WGS"],
        INDEX=index_type(w, whole(panel), items=items),
    )
    source = KernelSource(template("conv_panel"), macros)
    return Launch(source, (w, whole(panel)), *launch_size(items, config["WGS"]))


def _weight_strides(p: Problem, w: View) -> dict[str, int]:
    return {
        "W_G": (p.inputs if p.exchanged else p.outputs) * w.strides[0],
        "W_K": w.strides[1 if p.exchanged else 0],
        "W_C": w.strides[0 if p.exchanged else 1],
        "W_R": w.strides[2],
        "W_S": w.strides[3],
    }


def _launch(step: Step, p: Problem, views: tuple[View, View], config: Config) -> Launch:
    x, w = views
    tile = Tile(config["VW"], config["NV"], config["TW"], config["TN"])
    store = _store(step, p, tile)
    shares = ceil(tile.channel_tiles(p) / config["KTS"])
    items = p.groups * shares * ceil(tile.pixel_tiles(p) / config["BLK"])
    padded = p.rows.padded or p.columns.padded
    macros = defines(
        N=p.n,
        G=p.groups,
        KG=p.outputs,
        CG=p.inputs,
        TX=x.base.dtype.cl,
        TT=w.base.dtype.cl,
        TY=store.outs[0].base.dtype.cl,
        **_axis_macros("H", "R", p.rows),
        **_axis_macros("W", "S", p.columns),
        PADDED=int(padded),
        **_image_strides("X", x),
        XC=x.strides[1],
        **_image_strides("Y", _result(step)),
        **_weights_macros(step, p, config),
        **{name: config[name] for name in ("VW", "NV", "TW", "TN", "BLK", "KTS", "WGS")},
        UNROLL_C=f'_Pragma("unroll {gcd(p.inputs, 4)}")' if p.inputs > 4 else '_Pragma("unroll")',
        INDEX=index_type(x, w, *store.outs, items=items),
    )
    # Without anything to add there is nothing to read, and perhaps no memory to point at.
    operands = (x, w) if p.depth else (store.outs[0], store.outs[0])
    source = KernelSource(template("conv_last"), macros + store.macros)
    return Launch(source, (*operands, *store.outs), *launch_size(items, config["WGS"]))


def _axis_macros(size: str, taps: str, t: Taps) -> dict[str, object]:
    """One axis: H or W, R or S."""
    return {
        size: t.size,
        f"O{size}": t.count,
        taps: t.number,
        f"S{size}": t.stride,
        f"D{taps}": f"({t.step})",
        f"{size}0": f"({t.first})",
        f"Y_{size}0": t.y_first,
        f"Y_{size}S": t.y_step,
    }


def _weights_macros(step: Step, p: Problem, config: Config) -> dict[str, object]:
    w = step.reads[root(step).inputs[1]]
    if config["PANEL"]:
        found: dict[str, object] = {"PANEL": 1, "WR": w.shape[2], "WS": w.shape[3]}
        for name, t in (("WR", p.rows), ("WS", p.columns)):
            found |= {f"{name}0": t.w_first, f"{name}1": t.w_step}
        return found
    strides = _weight_strides(p, w)
    return {
        "PANEL": 0,
        "W_0": p.rows.w_first * w.strides[2] + p.columns.w_first * w.strides[3],
        **{name: strides[name] for name in ("W_G", "W_K", "W_C")},
        "W_R": p.rows.w_step * w.strides[2],
        "W_S": p.columns.w_step * w.strides[3],
    }


def _image_strides(letter: str, view: View) -> dict[str, object]:
    """Strides of a view; of an axis of size 1 its own stride may be anything."""
    _, _, h, w = view.shape
    pitch = view.pitch
    if pitch is None:
        n, _, h, w = view.strides
        return {f"{letter}N": n, f"{letter}H": h, f"{letter}W": w}
    return {f"{letter}N": h * w * pitch, f"{letter}H": w * pitch, f"{letter}W": pitch}


def _store(step: Step, p: Problem, tile: Tile) -> Store:
    """What happens to results: whole vectors, and pieces of one that reaches past the channels."""
    rest = p.outputs % tile.vw
    pieces = [b for b in PIECES if rest & b]
    flat = p.columns.count > p.plane[1]
    at = _unfolded(step, p) if flat else ("n", "k", "h", "w")
    store = storing(step, "n, k, h, w", at, 1, (tile.vw, *pieces))
    return Store((*store.macros, ("TAIL(n, k, h, w, v)", _tail(pieces, tile.vw))), store.outs)


def _unfolded(step: Step, p: Problem) -> tuple[str, ...]:
    """The coordinates of a flattened pixel; its number alone where all views allow it."""
    counted = any(isinstance(n.op, SOURCES) and not isinstance(n.op, Constant) for n in step.nodes)
    if not counted and all(_linear(v) for v in (*step.reads.values(), *step.writes.values())):
        return "0", "k", "0", "(w)"
    rows, columns = p.plane
    return f"(w) / {rows * columns}", "k", f"(w) / {columns} % {rows}", f"(w) % {columns}"


def _linear(view: View) -> bool:
    """Whether pixels follow each other at one distance, or all are the same."""
    return view.pitch is not None or all(n == 1 for i, n in enumerate(view.shape[-4:]) if i != 1)


def _result(step: Step) -> View:
    """Where the root's own output lies, if it is stored."""
    (out, *_) = root(step).outputs
    return step.writes.get(out) or last(out)


def _tail(pieces: Iterable[int], width: int) -> str:
    """Statements that store the first lanes of a vector in pieces."""
    text, at = [], 0
    for size in pieces:
        lanes = "".join(f"{at + i:x}" for i in range(size))
        v = f"(v).s{lanes}" if width > 1 else "v"
        text.append(f"FINISH({size}, n, (k) + {at}, h, w, {v})")
        at += size
    return " ".join(text)
