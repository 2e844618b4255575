"""What counts as passed of librdkafka's own tests; the lines are those of its test program."""

from __future__ import annotations

import pytest

from tests.clients.transactions.librdkafka_suite import judged

PASSED = "\x1b[36m[0129_a / 1.0s] \x1b[32m========= Test 0129_a PASSED =========\x1b[0m\n"
PART = "[0177_b / 51.088s] [ do_test_mixed:810: isolation.level=read_committed: PASS (5.09s) ]\n"
SKIPPED = "[0098_c / 0.000s] ========= Test 0098_c SKIPPED =========\nALL TESTS PASSED\n"
PART_SKIPPED = "[0103_d / 2.000s] [ do_test_fatal:610: SKIPPED (0.00s) ]\n"


def test_every_part_has_passed() -> None:
    assert judged(0, PART + PASSED + "[0129_a / 1.1s] duration 0.5ms\n") == (
        True,
        [
            PART.strip(),
            "[0129_a / 1.0s] ========= Test 0129_a PASSED =========",
        ],
    )


@pytest.mark.parametrize(
    ("exit_code", "output"),
    [(1, PART), (-6, PASSED), (0, ""), (0, SKIPPED), (0, PASSED + PART_SKIPPED)],
)
def test_what_failed_was_skipped_or_never_ran_has_not_passed(exit_code: int, output: str) -> None:
    assert not judged(exit_code, output)[0]
