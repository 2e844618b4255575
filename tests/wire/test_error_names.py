"""Names of error codes, which a peer may have invented."""

import json
from pathlib import Path

import pytest

from kraft_wire.wire.error_names import error_name, error_of
from kraft_wire.wire.generated.error_code import ErrorCode

SCHEMA = Path(__file__).parents[2] / "schemas" / "errors.json"


def test_every_error_of_the_release_has_kafkas_name() -> None:
    for error in json.loads(SCHEMA.read_text()):
        assert error_name(error["code"]) == error["name"]


@pytest.mark.parametrize("code", [-2, 4_711, 32_767])
def test_code_that_nobody_knows_is_shown_as_its_number(code: int) -> None:
    assert error_name(code) == f"error {code}"


def test_every_error_of_the_release_is_that_error() -> None:
    for error in json.loads(SCHEMA.read_text()):
        assert error_of(error["code"]).name == error["name"]


@pytest.mark.parametrize("code", [-2, 4_711, 32_767])
def test_code_that_nobody_knows_is_an_unexpected_error(code: int) -> None:
    """As `org.apache.kafka.common.protocol.Errors.forCode`: never a success."""
    assert error_of(code) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_every_error_of_the_release_has_kafkas_message() -> None:
    """The messages were printed by the release's own enum."""
    for error in json.loads(SCHEMA.read_text()):
        assert ErrorCode(error["code"]).message == error["message"]
