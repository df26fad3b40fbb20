"""Each printed number carries the verdict that our count gives it."""

from __future__ import annotations

import pytest

from pocketgrad.zoo import card
from pocketgrad.zoo.grid import DEPTHS, KINDS, WIDTHS, count, grid_name
from pocketgrad.zoo.papers import MATCHING, PRINTED, Printed, reconciliation


@pytest.mark.golden
def test_every_verdict_is_what_the_numbers_say(golden):
    lines = []
    for row in reconciliation():
        p = row.printed
        assert row.agrees == (p.verdict in MATCHING), (p, row.ours)
        assert p.note or p.verdict in MATCHING, p
        name = f"{p.model} {p.options['classes']}" if p.options else p.model
        parts = (f"{p.source:<11}", f"{name:<17}", f"{p.column:<12}", f"{p.text:>7}")
        ours = f"{row.ours:>20,.0f} {p.measure:<18}"
        lines.append(f"{' '.join(parts)} {ours} {p.verdict}".rstrip())
    golden("zoo/papers.txt", "\n".join(lines) + "\n")


def test_the_misprints_are_the_five_known_ones():
    slips = [(p.model, p.column, p.text) for p in PRINTED if p.verdict == "misprint"]
    assert slips == [
        ("fc-d8-w512", "FLOPs", "252G"),
        ("conv-d2-w128", "parameters", "15K"),
        ("conv-d2-w512", "FLOPs", "618G"),
        ("conv-d2-w512", "parameters", "237M"),
        ("conv-d8-w512", "parameters", "537M"),
    ]


def test_the_mentee_meets_its_paper_with_a_thousand_outputs():
    assert card("mentee").make(classes=1000).parameter_count() == 26_890_344


def test_the_grids_have_all_cells_and_their_formulas():
    for kind in KINDS:
        for depth in DEPTHS:
            for width in WIDTHS:
                assert card(grid_name(kind, depth, width)).params == count(kind, depth, width)


def test_a_printed_number_is_read_with_its_last_digit_as_unit():
    near = Printed("C", "mentee", "FLOPs", "15.1G", "FLOPs of a step")
    assert near.value == pytest.approx(15.1e9)
    assert near.unit == pytest.approx(0.1e9)
    assert near.near(15.19e9)
    assert not near.near(15.21e9)
    whole = Printed("E", "lenet5", "Convs", "2", "convolutions")
    assert whole.unit == 0
    assert not whole.near(3)
