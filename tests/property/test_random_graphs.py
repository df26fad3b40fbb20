"""Random graphs keep their meaning through passes, fusion, placement and every backend's arena."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from tests.helpers.evaluate import evaluate
from tests.helpers.plan_oracle import audit
from tests.helpers.random_graphs import feeds_for, graphs

from pocketgrad.backends.api import Backend
from pocketgrad.backends.null import NullBackend
from pocketgrad.backends.reference import ReferenceBackend
from pocketgrad.engine.compile import compile_graph, plan_graph
from pocketgrad.ir.core import Graph
from pocketgrad.ir.text import graph_text, parse
from pocketgrad.ir.verify import verify
from pocketgrad.ops import VOCABULARY
from pocketgrad.passes.pipeline import PASSES

RUNS = 2  # the second starts from what the first left in donated inputs and in the arena


@settings(max_examples=200)
@given(graphs())
def test_printed_and_parsed_back_equal(graph: Graph) -> None:
    verify(graph)
    again = parse(graph_text(graph), VOCABULARY)
    assert graph_text(again) == graph_text(graph)
    assert_equal_meaning(graph, again)


@settings(max_examples=200)
@given(graphs())
def test_every_pass_keeps_the_meaning(graph: Graph) -> None:
    for step in PASSES:
        after = step(graph)
        verify(after, after=step.__name__)
        assert len(after.nodes) <= len(graph.nodes)
        assert_equal_meaning(graph, after)
        graph = after


@settings(max_examples=400)
@given(graphs())
def test_plans_keep_the_rules_of_memory(graph: Graph) -> None:
    for backend in (ReferenceBackend(), NullBackend()):
        note(graph_text(graph))
        audit(*plan_graph(graph, backend))


@settings(max_examples=400)
@given(graphs())
def test_a_plan_computes_what_its_graph_means(graph: Graph) -> None:
    run_and_compare(graph, ReferenceBackend())


SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]  # a backend keeps nothing
LARGE = graphs(most_nodes=30, most_outputs=6)  # few large graphs: building programs takes the time


@settings(max_examples=15, suppress_health_check=SHARED)
@given(graph=LARGE)
def test_backends_compute_what_random_graphs_mean(backend: Backend, graph: Graph) -> None:
    run_and_compare(graph, backend)


@pytest.mark.fuzz
@settings(max_examples=300, derandomize=False, suppress_health_check=SHARED)
@given(graph=LARGE)
def test_backends_compute_what_many_random_graphs_mean(backend: Backend, graph: Graph) -> None:
    run_and_compare(graph, backend)


def run_and_compare(graph: Graph, backend: Backend) -> None:
    note(graph_text(graph))
    executable = compile_graph(graph, backend, poison=True)
    feeds = feeds_for(graph)
    for _ in range(RUNS):
        executable.run(feeds)
        expected = evaluate(graph, feeds)
        for value in graph.outputs:
            np.testing.assert_array_equal(executable.read(value.name), expected[value], value.name)
        feeds = {v.name: feeds[v.name] for v in graph.inputs}
        for old, new in graph.updates.items():
            found = executable.read(old.name)
            np.testing.assert_array_equal(found, expected[new], f"new {old.name}")
            feeds[old.name] = np.clip(found, -9, 9)


def assert_equal_meaning(a: Graph, b: Graph) -> None:
    feeds = feeds_for(a)
    left, right = evaluate(a, feeds), evaluate(b, feeds)
    for v, w in zip(a.outputs, b.outputs, strict=True):
        np.testing.assert_array_equal(left[v], right[w])
    news = {old.name: new for old, new in b.updates.items()}
    for old, new in a.updates.items():
        np.testing.assert_array_equal(left[new], right[news[old.name]])
