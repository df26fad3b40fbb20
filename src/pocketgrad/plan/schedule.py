"""A graph as ordered steps, each value with its place: fusion, views, joins in place, donation.

A value is stored unless it lives only inside one step. Where its reader or its donated input has a
place for it already, it is written there and never copied.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from pocketgrad.ir.core import Graph, Node, TensorType, Value
from pocketgrad.ops.arithmetic import Cast
from pocketgrad.ops.conv import Conv2dGradWeight
from pocketgrad.ops.linalg import MatMul
from pocketgrad.ops.move import Concat, Pad, Reshape, Transpose
from pocketgrad.ops.source import Constant
from pocketgrad.plan.domain import SOURCES, analyse, loopable, reduced
from pocketgrad.plan.fusion import Fusion, Group
from pocketgrad.plan.layout import Layout, channels_last, readable_last, runs_last, takes_any
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import VIEW_OPS, View, last, row_major, through, whole

ANYWHERE = (Concat, Conv2dGradWeight, MatMul)  # their results may be stored with any strides


@dataclass(frozen=True, eq=False)
class Schedule:
    """Ordered steps, and how every value that is read or kept lies in memory."""

    steps: tuple[Step, ...]
    views: Mapping[Value, View]


def schedule(graph: Graph, lanes: int = 0, layout: Layout = channels_last) -> Schedule:
    """Group, order and place; donated inputs are overwritten wherever nothing reads them later.

    ``lanes``: floats in a vector of a device that may have images channels-last; 0 for others.
    ``layout`` tells which do.
    """
    fusion = Fusion(graph)
    images = layout(graph, lanes) if lanes else frozenset()
    copied: set[Value] = set()
    while True:
        scheduler = _Scheduler(graph, fusion, images, copied)
        result = scheduler.run()
        unsafe = {v for v in graph.updates if v not in copied and not _overwritable(result, v)}
        if not unsafe:
            return result
        copied |= unsafe


class _Scheduler:
    def __init__(
        self, graph: Graph, fusion: Fusion, images: frozenset[Value], copied: set[Value]
    ) -> None:
        self.graph, self.fusion, self.copied = graph, fusion, copied
        self.last = images  # values that lie channels-last
        self.steps: list[Step] = []
        self.views: dict[Value, View] = {v: whole(v) for v in graph.inputs}
        self.places: dict[Value, View] = {}
        self._claim_places()

    def run(self) -> Schedule:
        for group in _ordered(self.fusion.groups):
            self._emit(group)
        for value in self.graph.outputs:
            view = self._lasting(value)
            self.views[value] = view if view.dense else self._dense(value, view)
        news = {old: self._lasting(new) for old, new in self.graph.updates.items()}
        for old, view in news.items():
            if view != whole(old):
                self._copy(self.graph.updates[old], view, whole(old))
        return Schedule(tuple(self.steps), self.views)

    # ---- where values are written -------------------------------------------------------------

    def _claim_places(self) -> None:
        for old, new in self.graph.updates.items():
            if old not in self.copied:
                self._claim(new, whole(old))
        for node in reversed(self.graph.nodes):
            if isinstance(node.op, Concat):
                (joined,) = node.outputs
                target = self._place(joined)
                self.places[joined] = target
                for cut, part in zip(
                    node.op.parts([v.shape for v in node.inputs]), node.inputs, strict=True
                ):
                    there = through(cut, target)
                    assert there is not None
                    self._claim(part, there)

    def _claim(self, value: Value, target: View) -> None:
        """Have ``value`` computed in ``target`` if its producer can write there."""
        maker = self.graph.producers.get(value)
        while maker is not None:
            before = _before(maker, target)
            if before is None:
                break
            (value,), target = maker.inputs, before
            maker = self.graph.producers.get(value)
        if maker is None or value in self.places or isinstance(maker.op, (*VIEW_OPS, *SOURCES)):
            return
        group = self.fusion.of[self.fusion.position[maker]]
        root = self.graph.nodes[group.root]  # whose kernel stores it
        fits = target.dense if not runs_last(root, self.last) else target.pitch is not None
        if group.loops or fits or isinstance(maker.op, ANYWHERE):
            self.places[value] = target

    # ---- steps --------------------------------------------------------------------------------

    def _emit(self, group: Group) -> None:
        node = self.graph.nodes[group.root]
        if group.loops:
            self._emit_loops(group)
        elif isinstance(node.op, Concat):
            self._emit_concat(node)
        elif isinstance(node.op, Pad):
            self._emit_pad(node)
        else:
            self._emit_kernel(node, group)

    def _emit_loops(self, group: Group) -> None:
        nodes = self.fusion.closure(group.nodes)
        inside = {v for n in nodes for v in n.outputs}
        reads = self._operands(nodes, inside)
        self._append(tuple(nodes), reads, self._results(nodes, group))

    def _operands(self, nodes: list[Node], inside: set[Value]) -> dict[Value, View]:
        outside = dict.fromkeys(v for n in nodes for v in n.inputs if v not in inside)
        return {v: self._stored(v) for v in outside}

    def _results(self, nodes: list[Node], group: Group) -> dict[Value, View]:
        """What the group computes and others need, with its place."""
        members = set(nodes)
        computed = {v for i in group.nodes for v in self.graph.nodes[i].outputs}
        outs = [v for n in nodes for v in n.outputs]
        return {
            v: self._place(v)
            for v in outs
            if v in computed and (v in self.places or self.fusion.leaves(v, members))
        }

    def _emit_kernel(self, node: Node, group: Group) -> None:
        """A kernel of its own, with the elementwise work it absorbed."""
        reads = {v: self._operand(node, i) for i, v in enumerate(node.inputs)}
        rest = self.fusion.closure([i for i in group.nodes if i != group.root])
        inside = {v for n in (node, *rest) for v in n.outputs}
        for v, view in self._operands(rest, inside).items():
            if v not in reads:
                reads[v] = view if self._walkable(node, view) else self._dense(v, view)
        writes = self._results([node, *rest], group)
        if not rest:  # kernels of several outputs may leave out any but the first
            writes = {node.outputs[0]: self._place(node.outputs[0]), **writes}
        self._append((node, *rest), reads, writes)

    def _operand(self, node: Node, position: int) -> View:
        """How a kernel reads an operand: as it lies if it can, or a copy that lies as it must."""
        value = node.inputs[position]
        view = self._stored(value)
        if takes_any(node, position):
            return view
        if runs_last(node, self.last):
            fits = readable_last(node, position, view)
            return view if fits else self._copy(value, view, last(_renamed(value, "last")))
        return view if view.dense else self._dense(value, view)

    def _walkable(self, node: Node, view: View) -> bool:
        """Whether lanes of an epilogue can run along an operand as they do along the result."""
        if len(node.outputs[0].shape) != 4:
            return True
        if runs_last(node, self.last):
            return len(view.shape) < 3 or view.shape[-3] == 1 or view.strides[-3] in (0, 1)
        return _walks_planes(view)

    def _emit_concat(self, node: Node) -> None:
        (joined,) = node.outputs
        self.views[joined] = target = self.places[joined]
        assert isinstance(node.op, Concat)
        cuts = node.op.parts([v.shape for v in node.inputs])
        for cut, part in zip(cuts, node.inputs, strict=True):
            there = through(cut, target)
            assert there is not None
            view = self._stored(part)
            if view != there and part.type.size:
                self._copy(part, view, there)

    def _emit_pad(self, node: Node) -> None:
        (padded,), (x,) = node.outputs, node.inputs
        assert isinstance(node.op, Pad)
        target = self._place(padded)
        filler = Node(
            Constant(node.op.value, x.dtype, padded.shape), (), (padded,), node.scope, node.phase
        )
        self._append((filler,), {}, {padded: target})
        inside = through(node.op.interior(x.shape), target)
        assert inside is not None
        if x.type.size:
            self._copy(x, self._stored(x), inside)

    def _append(
        self, nodes: tuple[Node, ...], reads: dict[Value, View], writes: dict[Value, View]
    ) -> None:
        self.views |= writes
        if any(v.type.size for v in writes):
            self.steps.append(Step(nodes, reads, writes))

    def _place(self, value: Value) -> View:
        return self.places.get(value) or (last if value in self.last else whole)(value)

    # ---- how values are read --------------------------------------------------------------------

    def _stored(self, value: Value) -> View:
        """How a value lies; sources and scattered reshapes get a place first."""
        if value in self.views:
            return self.views[value]
        node = self.graph.producers[value]
        if isinstance(node.op, VIEW_OPS):
            view = self._stored(node.inputs[0])
            seen = through(node.op, view)
            if seen is None:
                seen = through(node.op, self._dense(node.inputs[0], view))
                assert seen is not None
            self.views[value] = seen
        else:
            reads = {v: self._stored(v) for v in node.inputs}
            self._append((node,), reads, {value: whole(value)})
        return self.views[value]

    def _lasting(self, value: Value) -> View:
        """How a result lies; old contents of a donated input are saved before they are replaced."""
        view, origin = self._stored(value), value
        while (maker := self.graph.producers.get(origin)) and isinstance(maker.op, VIEW_OPS):
            (origin,) = maker.inputs
        passing = origin is view.base and origin in self.graph.updates
        return self._dense(value, view) if passing else view

    def _dense(self, value: Value, view: View) -> View:
        """A dense copy of a scattered value."""
        return self._copy(value, view, whole(_renamed(value, "dense")))

    def _copy(self, value: Value, source: View, target: View) -> View:
        moved = Value(value.type, f"{value.name}.copy")
        maker = self.graph.producers.get(value)
        scope, phase = (maker.scope, maker.phase) if maker else ("", "forward")
        node = Node(Cast(value.dtype), (value,), (moved,), scope, phase)
        self.steps.append(Step((node,), {value: source}, {moved: target}))
        return target


def _ordered(groups: list[Group]) -> list[Group]:
    """Topological order, as close to the order of the graph as dependencies allow."""
    waiting = {g: len(g.before) for g in groups}
    after: dict[Group, list[Group]] = {}
    for group in groups:
        for earlier in group.before:
            after.setdefault(earlier, []).append(group)
    ready = [(g.nodes[-1], i) for i, g in enumerate(groups) if not waiting[g]]
    index = {g: i for i, g in enumerate(groups)}
    heapq.heapify(ready)
    order = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(groups[i])
        for later in after.get(groups[i], ()):
            waiting[later] -= 1
            if not waiting[later]:
                heapq.heappush(ready, (later.nodes[-1], index[later]))
    assert len(order) == len(groups), "fusion made a cycle"
    return order


def _overwritable(result: Schedule, old: Value) -> bool:
    """Whether no step reads the old contents of a donated input after they were overwritten."""
    written: list[View] = []
    for step in result.steps:
        mine = [w for w in step.writes.values() if w.base is old]
        for value, read in step.reads.items():
            if read.base is not old:
                continue
            if any(_overlap(read, w) for w in written):
                return False
            if any(_overlap(read, w) for w in mine) and not in_place(step, value, mine):
                return False
        written += mine
    return True


def in_place(step: Step, value: Value, writes: list[View]) -> bool:
    """Whether the step reads each element of ``value`` before, and only where, it overwrites it."""
    domain = analyse(step.nodes) if all(map(loopable, step.nodes)) else None
    if domain is None or value not in domain.axes:
        return False
    read = step.reads[value]
    passes = [n.inputs[0] for n in step.nodes if reduced(n, domain.axes)]
    passes += [v for v in step.writes if domain.dims(v) & domain.row]
    last = max((domain.levels[v] for v in passes), default=0)
    for target, view in step.writes.items():
        if not any(view is w for w in writes):
            continue
        same = view == read and domain.axes.get(target) == domain.axes[value]
        late = domain.levels[target] == last or not domain.dims(target) & domain.row
        if not (same and late) and _overlap(read, view):
            return False
    return True


def _renamed(value: Value, how: str) -> Value:
    """A place for a copy of a value."""
    return Value(TensorType(value.shape, value.dtype), f"{value.name}.{how}")


def _before(maker: Node, target: View) -> View | None:
    """Where the input of a view op must be written for its output to lie at ``target``."""
    (x, *_) = maker.inputs or (None,)
    if isinstance(maker.op, Reshape) and x is not None and target.dense:
        return View(target.base, target.offset, x.shape, row_major(x.shape))
    if isinstance(maker.op, Transpose) and x is not None:
        placed = dict(zip(maker.op.axes, target.strides, strict=True))
        return View(
            target.base, target.offset, x.shape, tuple(placed[i] for i in range(len(placed)))
        )
    return None


def _walks_planes(view: View) -> bool:
    """Whether the rows of each plane follow each other, so that lanes may run across them."""
    if len(view.shape) < 2:
        return True
    (rows, columns), (down, along) = view.shape[-2:], view.strides[-2:]
    return rows == 1 or columns == 1 or down == columns * along


def _overlap(a: View, b: View) -> bool:
    (a0, a1), (b0, b1) = a.span, b.span
    return a0 < b1 and b0 < a1
