"""Workers of CPU runtimes get a core each, where that is ours to ask."""

from __future__ import annotations

from pocketgrad.backends.pinning import ASKED, cores, pin_workers


def test_every_runtime_is_asked_when_all_cores_are_ours() -> None:
    environment: dict[str, str] = {}
    pin_workers(environment, 8, 8)
    assert environment == dict(ASKED)


def test_what_the_user_has_set_for_a_runtime_stays_as_it_is() -> None:
    environment = {"SYCL_CPU_CU_AFFINITY": "spread"}
    pin_workers(environment, 8, 8)
    assert environment == {"SYCL_CPU_CU_AFFINITY": "spread", "POCL_AFFINITY": "1"}


def test_nothing_is_asked_within_a_set_of_some_cores() -> None:
    environment: dict[str, str] = {}
    pin_workers(environment, 4, 8)
    assert not environment


def test_cores_are_counted() -> None:
    allowed, present = cores()
    assert 1 <= allowed <= present
