"""Catch the message of an error that a test provokes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pocketgrad.base.errors import DataError, PocketgradError


def refusal(call: Callable[[], object], kind: type[PocketgradError] = DataError) -> str:
    """The message, which the command line prints as one line."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    return message
