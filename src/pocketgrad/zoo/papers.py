"""What the four papers print about their models, beside what these models really have.

C is Chen et al. 2019, E Cai et al. 2021 (EMDL), L Liu et al. (TX2); Das et al. print no counts.
Our number is counted on the model; the verdict is data, and a test holds it against the number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pocketgrad.zoo import card
from pocketgrad.zoo.grid import DEPTHS, WIDTHS, grid_name
from pocketgrad.zoo.summary import Traced, traced

Verdict = Literal["agrees", "other unit", "misprint", "other definition", "unexplained"]
MATCHING: tuple[Verdict, ...] = ("agrees", "other unit")
NEAR = 0.005  # relative; some numbers carry more digits than their computation had

BATCH = 128  # of Chen et al.
SUFFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}

# What is counted on a model; a printed number may be another quantity than its column says.
MEASURES: Mapping[str, Callable[[Traced], float]] = {
    "parameters": lambda t: t.module.parameter_count(),
    "MiB of parameters": lambda t: t.module.parameter_count() * 4 / 2**20,
    "multiply-adds": lambda t: t.multiply_adds,
    "FLOPs of a step": lambda t: 6 * BATCH * t.multiply_adds,
    "FLOPs of 100 steps": lambda t: 600 * BATCH * t.multiply_adds,
    "convolutions": lambda t: t.convolutions,
}


@dataclass(frozen=True)
class Printed:
    """One number of a paper, and what it is compared with."""

    source: str
    model: str
    column: str
    text: str
    measure: str
    verdict: Verdict = "agrees"
    note: str = ""
    options: Mapping[str, int] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """The number, in the unit of the measure (MiB are printed as M)."""
        digits, suffix = self._parts
        return float(digits) * self._factor(suffix)

    @property
    def unit(self) -> float:
        """One in the last printed digit; 0 for a number of things."""
        digits, suffix = self._parts
        decimals = len(digits.partition(".")[2])
        return self._factor(suffix) * 10.0**-decimals if suffix else 0.0

    def near(self, ours: float) -> bool:
        """Whether our number could be printed so, rounded or cut off."""
        return abs(ours - self.value) <= max(self.unit, NEAR * self.value)

    @property
    def _parts(self) -> tuple[str, str]:
        match = re.fullmatch(r"([\d.]+)([KMG]?)", self.text)
        assert match is not None
        return match[1], match[2]

    def _factor(self, suffix: str) -> float:
        return 1.0 if self.measure.startswith("MiB") else SUFFIXES[suffix]


@dataclass(frozen=True)
class Row:
    """A printed number with ours."""

    printed: Printed
    ours: float

    @property
    def agrees(self) -> bool:
        """Whether the numbers do; the verdict says why not."""
        return self.printed.near(self.ours)


# ---- Chen et al. ------------------------------------------------------------------------------

# FLOPs and parameters by width (across) and depth (down).
TABLE_4 = """
15.1G 196K  30G 393K  60G 786K     121G 1.57M
15.4G 200K  31G 409K  65G 852.48K  141G 1.84M
16G   209K  34G 442K  75G 984K     181G 2.36M
17G   225K  39G 508K  95G 1.25M    252G 3.41M
"""
TABLE_5 = """
1.3G 1.7K   2.7G 3.5K  5.5G  7K     11G    14K
30G  38.7K  118G 15K   469G  597K   618G   237M
88G  112K   350G 446K  1397G 1.78M  5577G  7.09M
204G 260K   814G 1M    3253G 4M     13000G 537M
"""
MISPRINTS = {
    ("fc-d8-w512", "FLOPs"): "the formula that gives all other cells gives 261.7G",
    ("conv-d2-w128", "parameters"): "a digit is missing: 150.9K",
    ("conv-d2-w512", "FLOPs"): "1866G; the cells beside it follow the formula",
    ("conv-d2-w512", "parameters"): "the point is missing: 2.37M",
    ("conv-d8-w512", "parameters"): "16.5M; its FLOPs are those of 16.5M",
}


def _grid(source: str, kind: str, table: str, measure: str) -> Iterator[Printed]:
    unit: Verdict = "agrees" if measure == "FLOPs of a step" else "other unit"
    for depth, line in zip(DEPTHS, table.strip().splitlines(), strict=True):
        texts = line.split()
        for i, width in enumerate(WIDTHS):
            name = grid_name(kind, depth, width)
            for column, text, what, fits in (
                ("FLOPs", texts[2 * i], measure, unit),
                ("parameters", texts[2 * i + 1], "parameters", "agrees"),
            ):
                slip = MISPRINTS.get((name, column))
                verdict: Verdict = "misprint" if slip else fits
                yield Printed(source, name, column, text, what, verdict, slip or "")


CHEN = (
    Printed(
        "C 4.1", "mentee", "parameters", "26.89M", "parameters",
        note="with 1000 outputs; the 10 of table 2 give 22,834,314", options={"classes": 1000},
    ),
    Printed(
        "C 4.1", "reduced-mobilenet", "parameters", "5.48M", "parameters", "unexplained",
        "table 2 lists 131,264 convolution weights, 718,784 if its 3×3×256×256 is a full one",
    ),
    *_grid("C table 4", "fc", TABLE_4, "FLOPs of 100 steps"),
    *_grid("C table 5", "conv", TABLE_5, "FLOPs of a step"),
)  # fmt: skip

# ---- Cai et al. -------------------------------------------------------------------------------

CAI = (
    Printed("E models", "lenet5", "Convs", "2", "convolutions"),
    Printed(
        "E models", "lenet5", "Parameter", "3.2K", "parameters", "unexplained",
        "the two convolutions alone hold 2,572",
    ),
    Printed("E models", "alexnet", "Convs", "5", "convolutions"),
    Printed("E models", "alexnet", "Parameter", "61M", "parameters"),
    Printed(
        "E models", "mobilenet-v2", "Convs", "53", "convolutions", "other definition",
        "the classifier counts as a 1×1 convolution",
    ),
    Printed(
        "E models", "mobilenet-v2", "Parameter", "3.4M", "parameters", "other definition",
        "as the model's own paper prints it; its published weights are 3,504,872",
    ),
    Printed(
        "E models", "squeezenet-1.1", "Convs", "18", "convolutions", "other definition",
        "the two convolutions of an expansion count as one",
    ),
    Printed(
        "E models", "squeezenet-1.1", "Parameter", "411.2K", "parameters", "unexplained",
        "727,626 with 10 classes",
    ),
    Printed(
        "E models", "googlenet", "Convs", "22", "convolutions", "other definition",
        "22 is the depth of the net",
    ),
    Printed(
        "E models", "googlenet", "Parameter", "6.8M", "parameters", "other definition",
        "the original has 5×5 where this has 3×3, and biases where this has norms",
    ),
)  # fmt: skip

# ---- Liu et al. -------------------------------------------------------------------------------

# Most numbers of this table are those of https://github.com/albanie/convnet-burden.
BURDEN = "as in convnet-burden, whose layers and image sizes differ a little"
_FLOPS_NOTE = "no reading of the model found that has so few"


def _liu(
    model: str, column: str, text: str, measure: str, verdict: Verdict = "agrees", note: str = "",
    **options: int,
) -> Printed:  # fmt: skip
    return Printed("L table II", model, column, text, measure, verdict, note, options)


LIU = (
    _liu("densenet40", "#Parameters", "1M", "parameters"),
    _liu("densenet40", "#Flops", "30M", "multiply-adds", "unexplained", _FLOPS_NOTE),
    _liu("resnet50", "#Parameters", "98M", "MiB of parameters", "other unit", "the size in MB"),
    _liu("resnet50", "#Flops", "4G", "multiply-adds", "other unit"),
    _liu("squeezenet-1.0", "#Parameters", "5M", "MiB of parameters", "other unit", "size in MB"),
    _liu(
        "squeezenet-1.0", "#Flops", "837M", "multiply-adds", "other definition", BURDEN
    ),
    _liu("vgg16", "#Parameters", "134M", "parameters", note="with 10 classes", classes=10),
    _liu(
        "vgg16", "#Flops", "4G", "multiply-adds", "unexplained", "15.5G at 224×224, 0.3G at 32×32"
    ),
    _liu("xception", "#Parameters", "23M", "parameters"),
    _liu("googlenet", "#Parameters", "5M", "parameters", note="with 10 classes", classes=10),
    _liu("googlenet", "#Flops", "30M", "multiply-adds", "unexplained", _FLOPS_NOTE),
    _liu("char-cnn-lstm", "#Parameters", "1M", "parameters", note="our sizes were chosen for it"),
    _liu("char-cnn-lstm", "#Flops", "23M", "multiply-adds", "unexplained", "steps are not said"),
    _liu("dcgan-generator", "#Parameters", "1M", "parameters", note="the generator alone"),
    _liu(
        "dcgan-generator", "#Flops", "30M", "multiply-adds", "unexplained",
        "36M with the discriminator",
    ),
    _liu(
        "alexnet", "#Parameters", "60M", "parameters", "other definition",
        "the two columns of the 2012 paper have 60,965,224",
    ),
    _liu(
        "alexnet", "#Flops", "727M", "multiply-adds", "other definition", BURDEN
    ),
    _liu("vgg19", "#Parameters", "548M", "MiB of parameters", "other unit", "the size in MB"),
    _liu("vgg19", "#Flops", "20G", "multiply-adds", "other unit"),
    _liu(
        "bert-base", "#Parameters", "110M", "parameters", "other definition",
        "109,482,240 with the pooler, which question answering does not read, and without the head",
    ),
    _liu(
        "resnet101", "#Parameters", "155M", "MiB of parameters", "other definition",
        "MB of feature maps in convnet-burden; the parameters have 170",
    ),
    _liu("resnet101", "#Flops", "8G", "multiply-adds", "other unit"),
    _liu(
        "resnet152", "#Parameters", "220M", "MiB of parameters", "other definition",
        "MB of feature maps in convnet-burden (219); the parameters have 230",
    ),
    _liu("resnet152", "#Flops", "11G", "multiply-adds", "other unit"),
    _liu("densenet100", "#Parameters", "7M", "parameters"),
    _liu("densenet100", "#Flops", "31M", "multiply-adds", "unexplained", _FLOPS_NOTE),
    _liu(
        "seq2seq", "#Parameters", "348M", "parameters", "unexplained",
        "sizes are not said; ours are those of the usual IWSLT'15 tutorial",
    ),
    _liu("seq2seq", "#Flops", "28G", "multiply-adds", "unexplained", "batch and steps not said"),
)  # fmt: skip

PRINTED: tuple[Printed, ...] = (*CHEN, *CAI, *LIU)


def reconciliation() -> list[Row]:
    """Every printed number beside ours; takes a few seconds, since each model is described."""
    known: dict[tuple[str, tuple[tuple[str, int], ...]], Traced] = {}
    rows = []
    for printed in PRINTED:
        key = printed.model, tuple(printed.options.items())
        if key not in known:
            found = card(printed.model)
            known[key] = traced(found.make(**printed.options), found.inputs)
        rows.append(Row(printed, MEASURES[printed.measure](known[key])))
    return rows
