"""The gradient of a convolution for its weights, images channels-last: a product over pixels."""

from __future__ import annotations

from math import ceil

from pocketgrad.kernels.conv import Problem
from pocketgrad.kernels.conv_grad import problem_of
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
    PARTS,
    VW,
    alone,
    even_tile,
    groups,
    index_type,
    launch_size,
    root,
    rooted,
    with_parts,
)
from pocketgrad.ops.conv import Conv2dGradWeight
from pocketgrad.plan.layout import FEW_CHANNELS, readable_last
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View

# Vectors of a tile and those it is made from: CPUs have 32 registers at most.
REGISTERS = 32
SHARES = (1, 2, 4, 8, 16)
SHORT_ROW = 8  # pixels; where rows of an image are shorter, beginning one costs more than a copy


PB = Param("PB", (8, 16, 32, 64, 128, 256, 512), 128, "most pixels of a chunk")


class ConvLastGradWeight(Kernel):
    """Images channels-last, of few channels anyhow; any stride, padding, dilation and groups."""

    name = "conv_last_grad"
    far = True
    params = (
        VW,
        Param("NV", (1, 2, 3, 4, 5, 6), 1, "vectors of a tile, channels of dy"),
        Param("CB", tuple(range(1, 29)), 1, "rows of a tile: channels of x"),
        Param("GATHER", (0, 1), 1, "1: rows of a tile are any taps and channels"),
        Param("COPY_X", (0, 1), 1, "1: rows are copied side by side first"),
        Param("COPY_Y", (0, 1), 0, "1: columns are"),
        PB,
        Param("ROW_ITEMS", SHARES, 1, "items that share the row tiles"),
        Param("COLUMN_ITEMS", SHARES, 1, "items that share the column tiles"),
        PARTS,
    )

    def matches(self, step: Step) -> bool:
        if not rooted(step, Conv2dGradWeight) or not alone(step):
            return False
        node = root(step)
        x, dy = (step.reads[v] for v in node.inputs)
        y = step.writes[node.outputs[0]]
        images = readable_last(node, 0, x) and dy.pitch is not None
        return images and dy.shape[1] > 1 and y.packed

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        """Accumulators that stay in registers, copies that have room, rows where they must lie."""
        p, x = problem_of(step), _x(step)
        rows = _rows(p, config)
        if x.pitch is None and not config["GATHER"]:
            return False
        if config["GATHER"] and not config["COPY_X"]:
            return False
        tile = config["CB"] * config["NV"] + config["NV"]
        return (
            config["CB"] <= max(1, rows)
            and tile <= REGISTERS
            and (config["COPY_Y"] == 1 or config["VW"] <= p.outputs)
            and _copied_nbytes(p, config) <= device.local_mem_nbytes
            and config["PARTS"] <= _chunks(p, config)
        )

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        """Tiles that fill registers; few weights of many pixels are summed in parts."""
        p = problem_of(step)
        if device.kind == "gpu":
            return {q.name: q.default for q in self.params}
        few = p.inputs < FEW_CHANNELS or _x(step).pitch is None
        config = _tile(p, few, device.vector_width)
        config |= {
            "GATHER": int(few),
            "COPY_X": int(few or (_moves(p) and p.columns.count < SHORT_ROW)),
            "COPY_Y": int(p.outputs % config["VW"] > 0),
            "PB": 128,
        }
        config |= _shared(step, config, device)
        while _copied_nbytes(p, config) > device.local_mem_nbytes and config["PB"] > PB.values[0]:
            config["PB"] //= 2
        return config

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        """One launch; a second that adds the parts where pixels are shared."""
        p = problem_of(step)
        x, dy = (step.reads[v] for v in root(step).inputs)
        y = step.writes[root(step).outputs[0]]
        mts, kts = _item(p, config)
        items = p.groups * ceil(_row_tiles(p, config) / mts) * ceil(_column_tiles(p, config) / kts)
        items *= config["PARTS"]

        def launch(out: View) -> Launch:
            macros = defines(
                **_geometry(p, x, dy),
                TX=x.base.dtype.cl,
                TD=dy.base.dtype.cl,
                TY=out.base.dtype.cl,
                **{f"DW_{axis}": stride for axis, stride in zip("KCRS", y.strides, strict=True)},
                **{k: config[k] for k in ("VW", "NV", "CB", "GATHER", "COPY_X", "COPY_Y", "PARTS")},
                PB=_pixels(p, config),
                MTS=mts,
                KTS=kts,
                INDEX=index_type(x, dy, out, items=items),
            )
            source = KernelSource(template("conv_last_grad"), macros)
            return Launch(source, (x, dy, out), *launch_size(items, 1))

        short = y.base.dtype.register != y.base.dtype.cl and _chunks(p, config) > 1
        if config["PARTS"] == 1 and not short:
            return Rendered((launch(y),))
        return with_parts(launch, y, {**config, "WGS": 1}, device)


def _tile(p: Problem, few: bool, width: int) -> dict[str, int]:
    """Vectors and rows of a tile: as many accumulators as there are registers, nearly."""
    vw = next(w for w in VW.values if w >= min(p.outputs, width))
    vectors = ceil(p.outputs / vw)
    nv = 3 if vectors == 3 else even_tile(vectors, 2)
    return {"VW": vw, "NV": nv, "CB": even_tile(p.depth if few else p.inputs, 28 // nv)}


def _moves(p: Problem) -> bool:
    """Whether some output reads another pixel than its own."""
    axes = p.rows, p.columns
    return any(a.stride > 1 or a.number > 1 or a.first != 0 for a in axes)


def _shared(step: Step, config: Config, device: DeviceInfo) -> dict[str, int]:
    """How the work is cut into items."""
    p = problem_of(step)
    alone = {"PARTS": 1, "ROW_ITEMS": 1, "COLUMN_ITEMS": 1}
    pixels, weights = _all_pixels(p), p.groups * p.outputs * p.depth
    enough = ceil(groups(device, pixels * weights) / p.groups)
    chunks, rows = _chunks(p, config), _row_tiles(p, config)
    images = sum(view.base.type.size for view in step.reads.values())
    if chunks >= enough and enough * weights <= images:
        return alone | {"PARTS": max(v for v in PARTS.values if v <= enough)}
    by_rows = max(v for v in SHARES if v <= min(enough, rows))
    left = min(ceil(enough / by_rows), _column_tiles(p, config))
    return alone | {"ROW_ITEMS": by_rows, "COLUMN_ITEMS": max(v for v in SHARES if v <= left)}


def _x(step: Step) -> View:
    return step.reads[root(step).inputs[0]]


def _rows(p: Problem, config: Config) -> int:
    """Rows that a tile may be made of: channels of a tap, or all."""
    return p.depth if config["GATHER"] else p.inputs


def _row_tiles(p: Problem, config: Config) -> int:
    tiles = ceil(_rows(p, config) / config["CB"])
    return tiles if config["GATHER"] else tiles * p.rows.number * p.columns.number


def _column_tiles(p: Problem, config: Config) -> int:
    return ceil(p.outputs / (config["NV"] * config["VW"]))


def _item(p: Problem, config: Config) -> tuple[int, int]:
    """Row and column tiles of an item."""
    rows = ceil(_row_tiles(p, config) / config["ROW_ITEMS"])
    return rows, ceil(_column_tiles(p, config) / config["COLUMN_ITEMS"])


def _all_pixels(p: Problem) -> int:
    return p.n * p.rows.count * p.columns.count


def _pixels(p: Problem, config: Config) -> int:
    """Pixels of a chunk."""
    return even_tile(_all_pixels(p), config["PB"])


def _chunks(p: Problem, config: Config) -> int:
    return ceil(_all_pixels(p) / _pixels(p, config))


def _copied_nbytes(p: Problem, config: Config) -> int:
    width = config["CB"] * config["COPY_X"]
    width += config["COPY_Y"] * _item(p, config)[1] * config["NV"] * config["VW"]
    return 4 * width * _pixels(p, config)


def _geometry(p: Problem, x: View, dy: View) -> dict[str, object]:
    """Where things lie and which taps read what."""
    rows, columns = p.rows, p.columns
    xn, xc, xh, xw = x.strides if x.pitch is None else _pixelwise(x)
    same = not _moves(p) and (rows.size, columns.size) == p.plane
    return {
        "N": p.n, "PIXELS": _all_pixels(p), "OH": rows.count, "OW": columns.count,
        "G": p.groups, "KG": p.outputs, "CG": p.inputs,
        "H": rows.size, "W": columns.size, "R": rows.number, "S": columns.number,
        "SH": rows.stride, "SW": columns.stride, "DR": rows.step, "DS": columns.step,
        "H0": f"({rows.first})", "W0": f"({columns.first})",
        "PADDED": int(rows.padded or columns.padded),
        "DENSE": int(same and x.pitch is not None),
        "XN": xn, "XC": xc, "XH": xh, "XW": xw, "YP": dy.pitch,
    }  # fmt: skip


def _pixelwise(view: View) -> tuple[int, int, int, int]:
    """Strides of a channels-last view; of an axis of size 1 its own may be anything."""
    _, _, h, w = view.shape
    pitch = view.pitch
    assert pitch is not None
    return h * w * pitch, 1, w * pitch, pitch
