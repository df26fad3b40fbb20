"""How families whose work is lines of neighbours share it among work-items.

An item computes SPAN vectors (0: the whole line) of RPT lines; items are counted line by line. CPUs
want few and large items, GPUs many small ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from pocketgrad.ir.core import Node
from pocketgrad.kernels.spec import Config, DeviceInfo, KernelSource, Launch, Param
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View

VW = Param("VW", (1, 2, 4, 8, 16), 1, "elements of a line computed together")
SPAN = Param("SPAN", (0, 1, 4), 0, "vectors of a line per item; 0: the whole line")
RPT = Param("RPT", (1, 2, 4, 8, 16, 32, 64, 128, 256), 1, "lines per item")
WGS = Param("WGS", (1, 64), 1, "items per group")
PARAMS = (VW, SPAN, RPT, WGS)
GROUPS_PER_UNIT = 4  # evens out a slow core; KERNELS.md wants at least 8 in all


@dataclass(frozen=True)
class Lines:
    """So many lines of so many elements."""

    count: int
    length: int

    def defaults(self, lanes: int, device: DeviceInfo) -> Config:
        """Whole lines in the widest vectors on CPUs; single elements on GPUs."""
        if device.kind == "gpu":
            return {"VW": 1, "SPAN": 1, "RPT": 1, "WGS": min(64, device.max_work_group)}
        groups = max(8, GROUPS_PER_UNIT * device.compute_units)
        rpt = max(v for v in RPT.values if v == 1 or v * groups <= self.count)
        return {"VW": widest(lanes, device), "SPAN": 0, "RPT": rpt, "WGS": 1}

    def segment(self, config: Config) -> int:
        """Elements of a line that an item computes."""
        return config["VW"] * config["SPAN"] or max(1, self.length)

    def segments(self, config: Config) -> int:
        """Items that share a line."""
        return ceil(self.length / self.segment(config))

    def macros(self, config: Config) -> dict[str, object]:
        """LINES, LENGTH, SEG, SEGS, RPT and VW."""
        return {
            "LINES": self.count,
            "LENGTH": self.length,
            "SEG": self.segment(config),
            "SEGS": self.segments(config),
            "RPT": config["RPT"],
            "VW": config["VW"],
        }

    def launches(
        self, source: KernelSource, args: tuple[View, ...], config: Config
    ) -> tuple[Launch, ...]:
        """One launch, rounded up to whole groups; none where nothing is computed."""
        items = self.segments(config) * ceil(self.count / config["RPT"])
        group = config["WGS"]
        size = ceil(items / group) * group
        return (Launch(source, args, (size,), (group,)),) if items else ()


def widest(lanes: int, device: DeviceInfo) -> int:
    """The widest vector of at most so many lanes that suits a device."""
    most = min(lanes, max(4, device.vector_width))
    return max(v for v in VW.values if v <= max(1, most))


def only_node(step: Step) -> Node | None:
    """The one node of a step that computes; None where others were fused to it."""
    computed = [n for n in step.nodes if n.inputs]
    return computed[0] if len(computed) == 1 else None
