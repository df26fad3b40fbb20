"""`pocketgrad models`: the models that can be trained by name, one of them, or the papers' numbers.

Costs are read from each model's traced graph; nothing is computed and no device is opened.
"""

from __future__ import annotations

import argparse
from functools import reduce
from typing import TYPE_CHECKING, Any

from pocketgrad.base.errors import SettingError
from pocketgrad.base.units import si
from pocketgrad.cli.output import Table, add_json, emit

if TYPE_CHECKING:
    from pocketgrad.zoo.registry import ModelCard

NAME = "models"
HELP = "list the models that can be trained by name, or the layers of one"
EXAMPLE = "pocketgrad models show resnet50"

Part = Table | str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument(
        "show", nargs="*", metavar="show NAME", help="the layers of this model instead of the list"
    )
    parser.add_argument(
        "--papers", action="store_true",
        help="the counts that the papers print beside ours, with a verdict on each",
    )  # fmt: skip
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the list, one model, or the reconciliation."""
    if args.papers:
        if args.show:
            raise SettingError("--papers is about all models; leave out 'show NAME'")
        payload, parts = papers()
    elif args.show:
        if len(args.show) != 2 or args.show[0] != "show":
            raise SettingError(
                f"'{' '.join(args.show)}' is not understood; ask `pocketgrad models show NAME`"
            )
        payload, parts = layers(args.show[1])
    else:
        payload, parts = listing()
    emit(args.json, payload, parts)
    return 0


def listing() -> tuple[dict[str, object], list[Part]]:
    """Every model with its domain and costs."""
    from pocketgrad import zoo

    known = [about(card) for card in zoo.cards()]
    columns = ("model", "domain", "one sample", "classes", "parameters", "forward", "step",
               "activations", "from")  # fmt: skip
    rows = [
        (
            m["name"], m["domain"], m["input"], str(m["classes"] or "–"), si(m["parameters"]),
            si(m["flops_per_sample"], "flop"), si(m["flops_per_step"], "flop"),
            si(m["activation_bytes"], "B"), m["paper"],
        )
        for m in known
    ]  # fmt: skip
    title = "models, with the cost of one sample: forward, training step, activations kept"
    return {"models": known}, [Table(title, columns, rows, "lllrrrrrl")]


def about(card: ModelCard) -> dict[str, Any]:  # Any: texts and numbers by name
    """What is known of a model without running it."""
    from pocketgrad.zoo.summary import traced

    found = traced(card.build(), card.inputs)
    return {
        "name": card.name,
        "domain": card.domain,
        "input": ", ".join(str(t) for t in card.inputs),
        "classes": card.classes,
        "parameters": card.params,
        "flops_per_sample": found.flops,
        "flops_per_step": step_flops(card),
        "activation_bytes": found.activation_nbytes,
        "paper": card.paper,
    }


def step_flops(card: ModelCard) -> int:
    """Arithmetic of one sample forward and backward; losses and updates differ and are left out."""
    from pocketgrad.ops.arithmetic import add
    from pocketgrad.ops.reduce import sum_
    from pocketgrad.passes.autodiff import gradients
    from pocketgrad.zoo.summary import traced

    found = traced(card.build(), card.inputs, training=True)
    with found.builder as builder:
        total = reduce(add, [sum_(output) for output in found.outputs])
        gradients(builder, total, [found.values[n] for n, _ in found.module.named_parameters()])
    return sum(node.cost.flops for node in found.builder.nodes)


def layers(name: str) -> tuple[dict[str, object], list[Part]]:
    """One model, layer by layer."""
    from pocketgrad import zoo
    from pocketgrad.zoo.summary import traced

    card = zoo.card(name)
    rows = traced(card.build(), card.inputs).layers()
    found = about(card)
    payload = found | {
        "options": card.options,
        "layers": [
            {
                "name": row.name,
                "kind": row.kind,
                "output": str(row.output),
                "parameters": row.params,
                "flops": row.flops,
            }
            for row in rows
        ],
    }
    cells = [
        (row.name or "–", row.kind, str(row.output), f"{row.params:,}", si(row.flops, "flop"))
        for row in rows
    ]
    columns = ("layer", "kind", "output", "parameters", "forward")
    options = ", ".join(f"{n}={value}" for n, value in card.options.items())
    return payload, [
        f"{card.name}: {card.paper}",
        f"takes {found['input']}; options {options or 'none'}",
        Table("", columns, cells, "lllrr"),
        f"{found['parameters']:,} parameters; one sample takes "
        f"{si(found['flops_per_sample'], 'flop')} forward, {si(found['flops_per_step'], 'flop')} "
        f"forward and backward, and {si(found['activation_bytes'], 'B')} of activations",
    ]


def papers() -> tuple[dict[str, object], list[Part]]:
    """What the papers print beside what is counted here."""
    from pocketgrad.zoo.papers import reconciliation

    known = reconciliation()
    found = [
        {
            "source": row.printed.source,
            "model": row.printed.model,
            "options": dict(row.printed.options),
            "column": row.printed.column,
            "printed": row.printed.text,
            "ours": row.ours,
            "measure": row.printed.measure,
            "verdict": row.printed.verdict,
            "note": row.printed.note,
        }
        for row in known
    ]
    rows = [
        (p.source, p.model, p.column, p.text, si(row.ours), p.measure, p.verdict, p.note)
        for row in known
        for p in [row.printed]
    ]
    columns = ("paper", "model", "column", "printed", "ours", "counted", "verdict", "note")
    sources = "C: Chen et al. 2019; E: Cai et al. 2021; L: Liu et al. (TX2)"
    return {"papers": found}, [Table("counts printed and ours", columns, rows, "lllrr"), sources]
