"""Which nodes become one launch: loop nests grow along edges while they stay legal and parallel.

Works on whole groups; the schedule then orders them and decides where values lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pocketgrad.ir.core import Graph, Node, Value
from pocketgrad.ops.conv import Conv2d, Conv2dGradInput
from pocketgrad.ops.linalg import MatMul
from pocketgrad.ops.move import Reshape
from pocketgrad.plan.domain import SOURCES, Domain, analyse, divisible, loopable, reduced
from pocketgrad.plan.views import VIEW_OPS

MIN_ROWS = 16  # passes over fewer rows than this leave cores idle, unless rows can be divided …
SERIAL_ELEMENTS = 16_384  # … or all is this small, where a launch costs more than it saves
EPILOGUES = (Conv2d, Conv2dGradInput, MatMul)  # ops whose kernels finish registers in place
FEW = 256  # numbers that may as well wait in memory for their readers
MAX_NODES = 96  # compile time of a kernel grows faster than its length
MAX_OPERANDS = 30  # what more reads gain is lost to registers
MAX_ARGUMENTS = 60  # a buffer and an offset each: 960 of the 1,024 bytes that all devices take


@dataclass(eq=False)
class Group:
    """Nodes fused so far, by position in the graph. A lone other op is a group of its own.

    ``root`` is the node it began with: the one whose kernel does the others' work as well.
    ``bit`` stands for the group in ``needs``, a set of all groups it depends on and itself.
    """

    nodes: list[int]
    loops: bool
    before: set[Group] = field(default_factory=set)
    after: set[Group] = field(default_factory=set)
    merged: bool = False  # into another group, so no longer one of its own
    root: int = field(init=False)
    bit: int = field(init=False)
    needs: int = field(init=False)

    def __post_init__(self) -> None:
        self.root = self.nodes[0]
        self.bit = self.needs = 1 << self.root
        for group in self.before:
            self.needs |= group.needs
            group.after.add(self)


class Fusion:
    """Greedy fusion over a graph. ``groups`` is the result."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.position = {node: i for i, node in enumerate(graph.nodes)}
        self.results = set(graph.results)
        self.of: dict[int, Group] = {}  # node position -> group
        self.groups: list[Group] = []
        for i, node in enumerate(graph.nodes):
            if not isinstance(node.op, (*SOURCES, *VIEW_OPS)):
                self._place(i)
        for group in list(self.groups):
            if isinstance(self.graph.nodes[group.root].op, EPILOGUES):
                self._absorb(group)
        self._join_scalars()

    def _absorb(self, anchor: Group) -> None:
        """Have elementwise work on the result of another kernel done before it is stored."""
        (out, *_) = self.graph.nodes[anchor.root].outputs
        for consumer in self.graph.consumers.get(out, ()):
            late = self.of.get(self.position[consumer])
            if late is None or not late.loops or self._detour(anchor, late):
                continue
            nodes = self.closure(late.nodes)
            domain = analyse(nodes)
            if domain is None or domain.row or not self._covers(domain, out):
                continue
            inside = {v for n in nodes for v in n.outputs}
            operands = {v for n in nodes for v in n.inputs} - inside - {out}
            if len(out.shape) == 4 and not all(self._planar(v, out) for v in operands):
                continue
            if self._sound([self.graph.nodes[anchor.root], *nodes], domain, known=1):
                self._merge(late, anchor)
                return

    def _planar(self, value: Value, out: Value) -> bool:
        """Whether an operand has one number per plane, or planes that lie as those of ``out``."""
        tail = (*(1,) * (4 - len(value.shape)), *value.shape)[-2:]
        maker = self.graph.producers.get(value)
        while maker is not None and isinstance(maker.op, Reshape):
            maker = self.graph.producers.get(maker.inputs[0])
        scattered = maker is not None and isinstance(maker.op, VIEW_OPS)
        return tail == (1, 1) or (tail == out.shape[-2:] and not scattered)

    @staticmethod
    def _covers(domain: Domain, out: Value) -> bool:
        """Whether each element of ``out`` belongs to one position of the domain and back."""
        return domain.dims(out) == frozenset(range(len(domain.sizes)))

    def _join_scalars(self) -> None:
        """Single numbers that do not depend on each other share a launch."""
        scalars: list[Group] = []
        late = set(self.graph.updates.values())  # must stay behind the readers of what they replace
        for group in list(self.groups):
            outs = [v for i in group.nodes for v in self.graph.nodes[i].outputs]
            if not group.loops or any(v.type.size != 1 or v in late for v in outs):
                continue
            for earlier in scalars:
                if not self._detour(group, earlier):
                    self._try_merge(group, earlier)
                if group.merged:
                    break
            else:
                scalars.append(group)

    def _place(self, i: int) -> None:
        node = self.graph.nodes[i]
        before = {self.of[p] for v in node.inputs for p in self._makers(v)}
        group = Group([i], loopable(node), before)
        self.of[i] = group
        self.groups.append(group)
        if not group.loops:
            return
        for other in sorted(group.before, key=lambda g: -g.nodes[-1]):
            if other.loops and not other.merged:
                self._try_merge(self.of[i], other)

    def _makers(self, value: Value) -> set[int]:
        """Positions of the placed nodes a value is made by, seen through views."""
        node = self.graph.producers.get(value)
        if node is None:
            return set()
        if isinstance(node.op, (*VIEW_OPS, *SOURCES)):
            return {p for v in node.inputs for p in self._makers(v)}
        return {self.position[node]}

    def _try_merge(self, late: Group, early: Group) -> None:
        joined = sorted({*late.nodes, *early.nodes})
        if late is early or len(joined) > MAX_NODES or self._detour(early, late):
            return
        if self._holds_up(early, late):
            return
        nodes = self.closure(joined)
        domain = analyse(nodes)
        if domain is None or not self._sound(nodes, domain):
            return
        self._merge(late, early)

    def _holds_up(self, early: Group, late: Group) -> bool:
        """Whether others would wait with ``early``, a few numbers, for what only ``late`` needs.

        A launch is soon saved elsewhere; a loop nest cut in two for it reads everything twice.
        """
        outs = [v for i in early.nodes for v in self.graph.nodes[i].outputs]
        if any(v.type.size > FEW for v in outs):
            return False
        more = late.needs & ~(early.needs | late.bit)
        return bool(more) and any(
            self.of.get(self.position[node]) not in (early, late)
            for value in outs
            for node in self._readers(value)
        )

    def _readers(self, value: Value) -> Iterator[Node]:
        """The nodes that compute with a value, seen through views."""
        for node in self.graph.consumers.get(value, ()):
            if isinstance(node.op, VIEW_OPS):
                yield from self._readers(node.outputs[0])
            else:
                yield node

    def _merge(self, late: Group, early: Group) -> None:
        early.nodes = sorted({*late.nodes, *early.nodes})
        late.merged = True
        self.groups.remove(late)
        for group in late.before:
            group.after.remove(late)
            group.after.add(early)
        for group in late.after:
            group.before.remove(late)
            group.before.add(early)
        early.before = (early.before | late.before) - {early, late}
        early.after = (early.after | late.after) - {early, late}
        self._spread(early.needs | late.needs, early)
        for i in late.nodes:
            self.of[i] = early

    @staticmethod
    def _spread(needs: int, group: Group) -> None:
        """Have a group and all that depend on it know what they depend on."""
        pending = [group]
        while pending:
            group = pending.pop()
            if group.needs | needs != group.needs:
                group.needs |= needs
                pending += group.after

    def _detour(self, early: Group, late: Group) -> bool:
        """Whether a path leads from early to late through a third group."""
        return any(g is not early and g.needs & early.bit for g in late.before)

    def closure(self, positions: list[int]) -> list[Node]:
        """The nodes, with the sources they use and the views that lie between them, in order."""
        chosen = set(positions)
        inside = {v for i in positions for v in self.graph.nodes[i].outputs}
        pending = [v for i in positions for v in self.graph.nodes[i].inputs]
        while pending:
            value = pending.pop()
            node = self.graph.producers.get(value)
            if node is None or self.position[node] in chosen:
                continue
            source = isinstance(node.op, SOURCES)
            if source or (loopable(node) and self._leads_inside(node, inside)):
                chosen.add(self.position[node])
                pending += node.inputs if not source else ()
        return [self.graph.nodes[i] for i in sorted(chosen)]

    def _hidden(self, value: Value, members: set[Node]) -> bool:
        """Whether a value read from memory is a view of one computed in the same group."""
        return any(self.graph.nodes[p] in members for p in self._makers(value))

    def _leads_inside(self, node: Node, inside: set[Value]) -> bool:
        """Whether a chain of loopable views ends at a value computed in the group or a source."""
        while isinstance(node.op, VIEW_OPS) and loopable(node):
            value = node.inputs[0]
            if value in inside:
                return True
            maker = self.graph.producers.get(value)
            if maker is None:
                return False
            if isinstance(maker.op, SOURCES):
                return True
            node = maker
        return False

    def leaves(self, value: Value, members: set[Node]) -> bool:
        """Whether anything outside the group needs the value, directly or through a view."""
        if value in self.results:
            return True
        for node in self.graph.consumers.get(value, ()):
            if node not in members:
                return True
            if isinstance(node.op, VIEW_OPS) and self.leaves(node.outputs[0], members):
                return True
        return False

    def _sound(self, nodes: list[Node], domain: Domain, known: int = 0) -> bool:
        """Every value needed outside is stored once, and enough runs side by side.

        The first ``known`` nodes are another kernel's: it stores what it computes itself.
        """
        members = set(nodes)
        inside = {v for node in nodes for v in node.outputs}
        operands = len({v for node in nodes for v in node.inputs} - inside)
        if operands > MAX_OPERANDS:
            return False
        stored = []
        for node in nodes[known:]:
            if any(v not in inside and self._hidden(v, members) for v in node.inputs):
                return False
            if isinstance(node.op, (*SOURCES, *VIEW_OPS)):
                continue
            for value in node.outputs:
                if self.leaves(value, members):
                    stored.append(value)
                    if not domain.storable(value):
                        return False
        partial = [node for node in nodes if reduced(node, domain.axes)]  # may need scratch
        if operands + len(stored) + len(partial) > MAX_ARGUMENTS:
            return False
        if not domain.row or domain.size(domain.outer) >= MIN_ROWS:
            return True
        small = domain.size(range(len(domain.sizes))) <= SERIAL_ELEMENTS
        return small or divisible(domain, nodes, stored)
