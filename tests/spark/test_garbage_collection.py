"""The collector is off for a body alone, whatever becomes of it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from kraft_wire.spark.garbage_collection import uncollected


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """Every test begins and ends with the collector on."""
    assert gc.isenabled()
    yield
    gc.enable()


def test_collector_is_off_for_the_body_alone() -> None:
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_collector_is_on_again_after_a_failure() -> None:
    with pytest.raises(ValueError, match="broken"), uncollected():
        raise ValueError("broken")
    assert gc.isenabled()


def test_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with uncollected(), uncollected():
        assert not gc.isenabled()
    assert not gc.isenabled()
