"""Workers of CPU runtimes get a core each, where that is ours to ask."""

from __future__ import annotations

from pocketgrad.backends.pinning import ASKED, cores, pins


def test_every_runtime_is_asked_when_all_cores_are_ours() -> None:
    assert pins((), 8, 8) == dict(ASKED)


def test_what_the_user_has_set_for_a_runtime_stays_as_it_is() -> None:
    assert pins(("SYCL_CPU_CU_AFFINITY",), 8, 8) == {"POCL_AFFINITY": "1"}


def test_nothing_is_asked_within_a_set_of_some_cores() -> None:
    assert pins((), 4, 8) == {}


def test_cores_are_counted() -> None:
    allowed, present = cores()
    assert 1 <= allowed <= present
