"""The fuzz targets without a fuzzer: each takes nothing, and random bytes, as it should."""

from random import Random

import pytest

from tests.fuzz.targets import TARGETS

SIZES = (1, 2, 3, 8, 40, 300)
EXECUTIONS = 20


@pytest.mark.parametrize("name", TARGETS)
def test_target_takes_any_bytes(name: str) -> None:
    random = Random(name)
    TARGETS[name](b"")
    for size in SIZES:
        for _ in range(EXECUTIONS):
            TARGETS[name](random.randbytes(size))
