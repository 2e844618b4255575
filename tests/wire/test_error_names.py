"""Names of error codes, which a peer may have invented."""

import json
from pathlib import Path

import pytest

from kraft_wire.wire.error_names import error_name

SCHEMA = Path(__file__).parents[2] / "schemas" / "errors.json"


def test_every_error_of_the_release_has_kafkas_name() -> None:
    for error in json.loads(SCHEMA.read_text()):
        assert error_name(error["code"]) == error["name"]


@pytest.mark.parametrize("code", [-2, 4_711, 32_767])
def test_code_that_nobody_knows_is_shown_as_its_number(code: int) -> None:
    assert error_name(code) == f"error {code}"
