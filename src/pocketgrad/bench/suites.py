"""Lists of workloads that are measured together, with the speedup that each has to reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pocketgrad.base.errors import UnknownNameError
from pocketgrad.bench.task import Workload


@dataclass(frozen=True)
class Row:
    """A workload and the least speedup over the best float32 form of PyTorch; 0 for none."""

    model: str
    batch: int
    at_least: float = 0.0
    image: int | None = None

    @property
    def workload(self) -> Workload:
        """With the defaults of a comparison."""
        return Workload(self.model, self.batch, self.image)


TABLE = (
    Row("model1", 32, 25),
    Row("model2", 32, 25),
    Row("model3", 32, 5),
    Row("mlp-784-256-128-16", 32, 3.3),
    Row("lenet5", 32, 4),
    Row("lenet5", 128, 3.5),
    Row("reduced-mobilenet", 128, 2.5),
    Row("reduced-resnet", 32, 2.3),
    Row("mentee", 32, 1.8),
    Row("vgg16", 32, 1.8, 32),
    Row("resnet50", 16, 1.7, 32),
    Row("densenet40", 32, 2),
    Row("mobilenet-v2", 4, 2, 224),
    Row("squeezenet-1.1", 4, 1.6, 224),
    Row("char-lstm", 32, 1.2),
)
# Those whose geometric mean is stated: the convolutional ones.
CONVOLUTIONAL = (
    "lenet5", "reduced-mobilenet", "reduced-resnet", "mentee", "vgg16", "resnet50", "densenet40",
    "mobilenet-v2", "squeezenet-1.1",
)  # fmt: skip
BATCHES = (1, 4, 16, 64)


def _batches() -> tuple[Row, ...]:
    """Every model of the table at every batch size; none may be slower than PyTorch."""
    models = {row.model: row.image for row in TABLE}
    return tuple(Row(m, b, 1.0, image) for m, image in models.items() for b in BATCHES)


SUITES: Mapping[str, tuple[Row, ...]] = {
    "table": TABLE,
    "batches": _batches(),
    "quick": tuple(row for row in TABLE if row.model in ("model1", "lenet5")),
}


def suite(name: str) -> tuple[Row, ...]:
    """The rows of a suite by name."""
    if name not in SUITES:
        raise UnknownNameError("suite", name, SUITES)
    return SUITES[name]
