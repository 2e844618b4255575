"""The fuzz targets without a fuzzer: each takes nothing, and random bytes, as it should."""

from random import Random

import pytest

from tests.fuzz.login_seeds import LOGIN_SEEDS
from tests.fuzz.login_targets import LOGIN_TARGETS
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


@pytest.mark.parametrize("name", LOGIN_TARGETS)
def test_target_takes_seeds_with_a_byte_changed(name: str) -> None:
    random = Random(name)
    for seed in LOGIN_SEEDS[name]():
        TARGETS[name](seed)
        for _ in range(EXECUTIONS):
            changed = bytearray(seed)
            changed[random.randrange(len(seed))] = random.randrange(256)
            TARGETS[name](bytes(changed))
