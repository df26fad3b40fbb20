"""Writes the OpenCL text of a loop nest. See loops.py for the shape of what comes out."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable
from dataclasses import dataclass

from pocketgrad.base.dtypes import float32, int32, int64
from pocketgrad.ir.core import Node, Value
from pocketgrad.kernels.expression import (
    apply,
    combine,
    extreme,
    literal,
    load,
    register,
    splat,
    store,
)
from pocketgrad.kernels.nest import Nest
from pocketgrad.ops.pointwise import Pointwise
from pocketgrad.ops.reduce import Reduction
from pocketgrad.ops.source import Constant, Iota, Uniform
from pocketgrad.plan.domain import Domain, reduced
from pocketgrad.plan.plan import Step

_REGISTER_STORAGE = {"float": float32, "int": int32, "long": int64}  # partial results by register
Names = ChainMap[Value, tuple[str, bool]]  # value -> register name, whether it is a vector


@dataclass(frozen=True)
class Cut:
    """How the loops are divided among work-items.

    An item does ``block`` outer positions of ``rows``. With ``chunks`` above 1 it does only
    ``chunk`` steps of one inner loop: the last where nothing is reduced, the first where reductions
    leave partial results, which a second kernel folds.
    """

    rows: int
    block: int
    chunk: int = 0
    chunks: int = 1


class Body:
    """The kernel text of one step."""

    def __init__(self, step: Step, domain: Domain, nest: Nest, width: int, cut: Cut) -> None:
        self.step, self.domain, self.nest, self.width = step, domain, nest, width
        self.cut = cut
        self.lines: list[str] = []
        self.count = 0
        accesses = [*step.reads, *step.writes]
        self.pointers = {v: f"p{i}" for i, v in enumerate(accesses)}
        self.makers = {v: n for n in step.nodes for v in n.outputs}
        self.folds = [n for n in step.nodes if reduced(n, domain.axes)]
        inner = {m for d in nest.inner for m in d.members}
        self.on_row = {v for v in domain.axes if domain.dims(v) & inner}
        self.partial = bool(self.folds) and cut.chunks > 1

    # ---- the kernel ------------------------------------------------------------------------------

    def text(self) -> str:
        """The kernel that runs over the rows."""
        cut = self.cut
        self._open()
        self._add("const INDEX item = get_global_id(0);")
        self._add(f"const INDEX part = item % {cut.chunks};")
        self._add(f"const INDEX first = item / {cut.chunks} * {cut.block};")
        if cut.chunk:
            size = self.nest.inner[0 if self.partial else -1].size
            self._add(f"const INDEX low = part * {cut.chunk};")
            self._add(f"const INDEX high = min(low + {cut.chunk}, (INDEX){size});")
        self._add(f"const INDEX past = min(first + {cut.block}, (INDEX){cut.rows});")
        self._add("for (INDEX row = first; row < past; row++) {")
        if self.nest.vector_outer:
            self._rows_side_by_side()
        else:
            self._decode("row", range(len(self.nest.outer)))
            self._row(1)
        return self._close()

    def finish_text(self) -> str:
        """The kernel that folds the partial results, an item per row, always in the same order."""
        self._open()
        self._add("const INDEX row = get_global_id(0);")
        self._add(f"if (row < {self.nest.rows}) {{")
        self._decode("row", range(len(self.nest.outer)))
        names: Names = ChainMap()
        for k, node in enumerate(self.folds):
            assert isinstance(node.op, Reduction)
            dtype, name = node.inputs[0].dtype, self._accumulator(node, 1)
            at = f"scratch{k} + part * {self.nest.rows} + row"
            self._add(f"for (INDEX part = 0; part < {self.cut.chunks}; part++) {{")
            kept = load(_REGISTER_STORAGE[dtype.register], 1, at, 1)
            total = combine(node.op.combine, name, kept, dtype, 1)
            self._add(f"{name} = {total};")
            self._add("}")
            names[node.outputs[0]] = (name, False)
        self._store_outer(names, 1)
        return self._close()

    def finish_registers(self, names: Names, width: int) -> None:
        """Only the stores, given values that another kernel already has in registers."""
        self.lines = []
        self._store_outer(names, width)

    def _open(self) -> None:
        values = {f"{i}": v.dtype.cl for i, v in enumerate((*self.step.reads, *self.step.writes))}
        scratch = {str(k): n.inputs[0].dtype.register for k, n in enumerate(self.folds)}
        args = [f"SHARED_BUF({t}, b{i})" for i, t in values.items()]
        self.lines = [f"    global {t}* p{i} = AT(b{i});" for i, t in values.items()]
        if self.partial:
            args += [f"SHARED_BUF({t}, c{k})" for k, t in scratch.items()]
            self.lines += [f"    global {t}* scratch{k} = AT(c{k});" for k, t in scratch.items()]
        self.lines = [f"kernel void ENTRY({', '.join(args)})", "{", *self.lines]

    def _close(self) -> str:
        return "\n".join([*self.lines, "    }", "}"]) + "\n"

    def _rows_side_by_side(self) -> None:
        """The last outer loop in vectors of rows, then its ragged end row by row."""
        last = len(self.nest.outer) - 1
        size = self.nest.outer[last].size
        vectors, rest = size // self.width, size % self.width
        self._add(f"const INDEX unit = row % {vectors + rest};")
        self._add(f"const INDEX above = row / {vectors + rest};")
        self._decode("above", range(last))
        if vectors:
            self._add(f"if (unit < {vectors}) {{")
            self._add(f"const INDEX i{last} = unit * {self.width};")
            self._row(self.width)
            self._add("}" + (" else {" if rest else ""))
        if rest:
            self._add(f"const INDEX i{last} = {vectors * self.width} + unit - {vectors};")
            self._row(1)
            if vectors:
                self._add("}")

    def _decode(self, position: str, loops: Iterable[int]) -> None:
        """Split a flat position into loop indices, last fastest."""
        rest = position
        indices = list(loops)
        for i in reversed(indices):
            size = self.nest.outer[i].size
            value = f"{rest} % {size}" if i != indices[0] else rest
            self._add(f"const INDEX i{i} = {value};")
            if i != indices[0]:
                self._add(f"const INDEX r{i} = {rest} / {size};")
                rest = f"r{i}"

    # ---- one row ---------------------------------------------------------------------------------

    def _row(self, width: int) -> None:
        """All passes over one row; ``width`` is that of the outer lanes."""
        names: Names = ChainMap()
        levels = self.domain.levels
        stores = [v for v in self.step.writes if v in self.on_row]
        for level in range(max(levels.values(), default=0) + 1):
            folds = [n for n in self.folds if levels[n.inputs[0]] == level]
            outs = [v for v in stores if levels[v] == level]
            if folds or outs:
                self._pass(folds, outs, names, width)
        if self.partial:
            self._store_partial(names, width)
        else:
            self._store_outer(names, width)

    def _store_outer(self, names: Names, width: int) -> None:
        self._store_all([v for v in self.step.writes if v not in self.on_row], names, width)

    def _store_partial(self, names: Names, width: int) -> None:
        """What this part of the row adds up to, rows side by side."""
        last = len(self.nest.outer) - 1
        terms = ["0"]
        for i, dim in enumerate(self.nest.outer):
            terms = [f"({' + '.join(terms)}) * {dim.size}", f"i{i}"]
        assert last >= 0 or terms == ["0"]
        for k, node in enumerate(self.folds):
            dtype = node.inputs[0].dtype
            at = f"scratch{k} + part * {self.nest.rows} + {' + '.join(terms)}"
            name = self._operand(node.outputs[0], names, width)
            self._add(store(_REGISTER_STORAGE[dtype.register], width, at, 1, name))

    def _pass(self, folds: list[Node], outs: list[Value], names: Names, width: int) -> None:
        targets = [*(n.inputs[0] for n in folds), *outs]
        for value in self._needed(targets, names):
            if value not in self.on_row:
                self._value(value, names, width)
        row_lanes = self.nest.lane is not None and not self.nest.vector_outer
        lanes = self.width if row_lanes else width
        sums: dict[Node, dict[int, str]] = {n: {} for n in folds}
        for node in folds:
            for w in {lanes, 1 if row_lanes else lanes}:
                sums[node][w] = self._accumulator(node, w)
        *around, last = range(len(self.nest.outer), len(self.nest.loops))
        self._add("{")
        for i in around:
            low, high = self._range(i)
            self._add(f"for (INDEX i{i} = {low}; i{i} < {high}; i{i}++) {{")
        low, end = self._range(last)
        self._add(f"INDEX i{last} = {low};")
        for w in dict.fromkeys((lanes, 1)) if row_lanes else (lanes,):
            step = w if row_lanes else 1
            self._add(f"for (; i{last} + {step} <= {end}; i{last} += {step}) {{")
            self._body(folds, outs, names.new_child(), w, {n: sums[n][w] for n in folds})
            self._add("}")
        self.lines += ["    " * 2 + "}" for _ in around]
        self._add("}")
        for node in folds:
            self._finish(node, sums[node], lanes, row_lanes, names)

    def _range(self, loop: int) -> tuple[str, str]:
        """First and one past the last index of an inner loop for this item."""
        cut_loop = len(self.nest.outer) if self.partial else len(self.nest.loops) - 1
        if self.cut.chunk and loop == cut_loop:
            return "low", "high"
        return "0", str(self.nest.loops[loop].size)

    def _body(
        self, folds: list[Node], outs: list[Value], names: Names, width: int, sums: dict[Node, str]
    ) -> None:
        for node in folds:
            (x,) = node.inputs
            name = self._operand(x, names, width)
            assert isinstance(node.op, Reduction)
            total = combine(node.op.combine, sums[node], name, x.dtype, width)
            self._add(f"{sums[node]} = {total};")
        self._store_all(outs, names, width)

    def _accumulator(self, node: Node, width: int) -> str:
        assert isinstance(node.op, Reduction)
        dtype = node.inputs[0].dtype
        name = self._fresh("a")
        start = splat(extreme(node.op.start, dtype), dtype, width)
        self._add(f"{register(dtype, width)} {name} = {start};")
        return name

    def _finish(
        self, node: Node, sums: dict[int, str], lanes: int, across: bool, names: Names
    ) -> None:
        """Fold the lanes, where they lie along the row, and the ragged end into the result."""
        assert isinstance(node.op, Reduction)
        dtype = node.inputs[0].dtype
        name, width = sums[lanes], lanes
        while across and width > 1:
            width //= 2
            half = self._fresh("h")
            total = combine(node.op.combine, f"{name}.lo", f"{name}.hi", dtype, width)
            self._add(f"const {register(dtype, width)} {half} = {total};")
            name = half
        if across and lanes > 1:
            total = combine(node.op.combine, name, sums[1], dtype, 1)
            name = self._fresh("h")
            self._add(f"const {register(dtype, 1)} {name} = {total};")
        names[node.outputs[0]] = (name, width > 1)

    # ---- values ----------------------------------------------------------------------------------

    def _needed(self, targets: Iterable[Value], names: Names) -> list[Value]:
        """Values a pass needs and that are not in registers yet, in order."""
        found: dict[Value, None] = {}

        def visit(value: Value) -> None:
            if value in names or value in found:
                return
            maker = self.makers.get(value)
            for v in maker.inputs if maker and value not in self.step.reads else ():
                visit(v)
            found[value] = None

        for target in targets:
            visit(target)
        return list(found)

    def _operand(self, value: Value, names: Names, width: int) -> str:
        """The register of a value, repeated in all lanes if it is a scalar in a vector body."""
        name, vector = self._value(value, names, width)
        return name if vector or width == 1 else splat(name, value.dtype, width)

    def _value(self, value: Value, names: Names, width: int) -> tuple[str, bool]:
        """Have a value in a register."""
        if value in names:
            return names[value]
        lane = self.nest.lane
        vector = width > 1 and lane is not None and self.nest.varies(self.domain, value, lane)
        w = width if vector else 1
        if value in self.step.reads:
            text = load(value.dtype, w, self._pointer(value), self._lane_stride(value))
        else:
            text = self._compute(self.makers[value], names, w)
        name = self._fresh("v")
        self._add(f"const {register(value.dtype, w)} {name} = {text};")
        names[value] = (name, vector)
        return names[value]

    def _compute(self, node: Node, names: Names, width: int) -> str:
        op, out = node.op, node.outputs[0]
        if isinstance(op, Constant):
            return literal(op.value, op.dtype)
        if isinstance(op, Iota):
            return self._counter(out, width, register(op.dtype, width), "int")
        if isinstance(op, Uniform):
            return self._uniform(node, op, names, width)
        operands = [self._operand(v, names, width) for v in node.inputs]
        if isinstance(op, Pointwise):
            return apply(op, tuple(v.dtype for v in node.inputs), operands, width)
        return operands[0]  # a view, or a reduction over axes of size 1

    def _counter(self, value: Value, width: int, vector: str, scalar: str) -> str:
        """The position-dependent number of a source, in all lanes."""
        strides = self.nest.counters[value]
        at = self._index(value, strides)
        if width == 1:
            return f"(({vector})({at}))"
        stride = 0 if self.nest.lane is None else strides[self.nest.lane]
        lanes = ", ".join(str(i * stride) for i in range(width))
        return f"(({vector})(({scalar})({at})) + ({vector})({lanes}))"

    def _uniform(self, node: Node, op: Uniform, names: Names, width: int) -> str:
        seed, step = (self._operand(v, names, 1) for v in node.inputs)
        u, f = ("uint", "float") if width == 1 else (f"uint{width}", f"float{width}")
        out = self._fresh("u")
        counter = self._counter(node.outputs[0], width, u, "uint")
        self._add(
            f"UNIFORM({u}, {f}, convert_{f}, {out}, ({counter}), {step}, {op.stream}, {seed})"
        )
        return out

    def _store_all(self, values: list[Value], names: Names, width: int) -> None:
        """Have all values in registers, then write them: one may take another's operand's place."""
        lane = self.nest.lane
        ready = []
        for value in values:
            vector = width > 1 and lane is not None and self.nest.varies(self.domain, value, lane)
            w = width if vector else 1
            ready.append((value, w, self._operand(value, names, w)))
        for value, w, name in ready:
            self._add(store(value.dtype, w, self._pointer(value), self._lane_stride(value), name))

    # ---- text ------------------------------------------------------------------------------------

    def _index(self, value: Value, strides: tuple[int, ...]) -> str:
        terms = [
            f"i{i}" if stride == 1 else f"i{i} * {stride}"
            for i, stride in enumerate(strides)
            if stride and self.nest.varies(self.domain, value, i)
        ]
        return " + ".join(terms) or "0"

    def _pointer(self, value: Value) -> str:
        return f"{self.pointers[value]} + {self._index(value, self.nest.strides[value])}"

    def _lane_stride(self, value: Value) -> int:
        lane = self.nest.lane
        return 0 if lane is None else self.nest.strides[value][lane]

    def _fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def _add(self, line: str) -> None:
        self.lines.append(f"        {line}")
