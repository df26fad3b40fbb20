"""`pocketgrad models`: the models that can be trained by name."""

from __future__ import annotations

import argparse

from pocketgrad.base.units import si
from pocketgrad.cli.output import Table, add_json, emit

NAME = "models"
HELP = "list the models that can be trained by name"
EXAMPLE = "pocketgrad models --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the table of models."""
    from pocketgrad import zoo

    cards = zoo.cards()
    payload = {
        "models": [
            {
                "name": c.name,
                "input": str(c.input),
                "classes": c.classes,
                "parameters": c.params,
                "paper": c.paper,
            }
            for c in cards
        ]
    }
    rows = [(c.name, str(c.input), str(c.classes), si(c.params), c.paper) for c in cards]
    columns = ("model", "one sample", "classes", "parameters", "from")
    emit(args.json, payload, [Table("models", columns, rows, "llrrl")])
    return 0
