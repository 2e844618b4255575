"""Vectors of a seed that nobody has seen before, made by Apache's classes in this very run.

The corpus is fixed, so it proves little about tomorrow; this is ``make golden`` in small. The seed
stands in the name of the kept file and in every failure.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.golden.batches import compare_built_batches
from tests.golden.comparison import compare
from tests.golden.generate import generate

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of fresh vectors, named by its seed."""
    seed = secrets.randbelow(2**31)
    path: Path = tmp_path_factory.mktemp("golden") / f"seed-{seed}.jsonl"
    generate(path, seed=seed, per_version=4, malformed=2, large=True)
    return path


def test_fresh_vectors_get_apaches_bytes_json_and_verdicts(vectors: Path) -> None:
    result = compare(vectors)
    assert result.perfect, (vectors.name, result.problems)
    assert sum(kind.refused.asked for kind in result.kinds.values()) >= 300


def test_batches_that_we_build_are_read_by_apache_as_meant(vectors: Path) -> None:
    result = compare_built_batches(vectors)
    assert result.problems == [], vectors.name
    assert result.tally.asked >= 100
