"""What a release answered to every row: a field that no case looks at is judged by it."""

import gzip
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraft_wire.conformance.answers import Answers, Row, answered
from kraft_wire.conformance.case import Listener
from kraft_wire.conformance.command import app
from kraft_wire.conformance.verdict import Outcome, Verdict
from kraft_wire.wire.generated.list_offsets import ListOffsetsResponse
from kraft_wire.wire.header import encode_response_header
from tests.conformance.broken_broker import Relay
from tests.conformance.judged_nodes import judged, targets
from tests.conformance.recording import NEWER, OLDER, PROFILE
from tests.conformance.test_suite import LIST_OFFSETS, not_passed, server
from tests.server_process import ServerProcess

__all__ = ["server"]

CASE = "list_offsets.earliest"
PATH = "topics[0].partitions[0].leader_epoch"


def another_epoch(api_key: int, version: int, response: bytes) -> bytes:
    """Answer ListOffsets with a leader epoch that the case does not look at."""
    if api_key != LIST_OFFSETS:
        return response
    head = len(encode_response_header(api_key, version, 0))
    message, _ = ListOffsetsResponse.decode(response, version, head)
    message.topics[0].partitions[0].leader_epoch += 5
    return response[:head] + message.encode(version)


def judged_by(address: str, *, has_answers: bool) -> Outcome:
    (outcome,) = judged(targets(address), f"{CASE}/11", has_answers=has_answers)
    return outcome


def test_field_that_the_case_does_not_look_at_is_found_and_named(server: ServerProcess) -> None:
    with Relay(server.bootstrap, another_epoch) as relay:
        outcome = judged_by(relay.address, has_answers=True)
        unaware = judged_by(relay.address, has_answers=False)
    assert (outcome.verdict, outcome.path) == (Verdict.DIFFERS, PATH)
    assert outcome.seen == "5"
    assert outcome.expected == "0 as of Apache Kafka 4.3.1"
    assert unaware.verdict is Verdict.PASSED, "the case itself does not look at the field"


def test_report_ends_at_the_exchange_at_fault(server: ServerProcess) -> None:
    with Relay(server.bootstrap, another_epoch) as relay:
        options = ["--bootstrap-server", relay.address, "--only", f"{CASE}/11"]
        done = CliRunner().invoke(app, options)
        minimal = CliRunner().invoke(app, [*options, "--profile", "minimal"])
    assert done.exit_code == 1
    (marked,) = [line for line in done.output.splitlines() if line.lstrip().startswith(">>")]
    assert f"{PATH} = 5" in marked
    assert minimal.exit_code == 0, "a profile without answers judges by the cases alone"


def test_broker_behind_another_address_is_judged_alike(server: ServerProcess) -> None:
    with Relay(server.bootstrap, lambda _api, _version, response: response) as relay:
        outcomes = judged(targets(relay.address), "find_coordinator", "describe_cluster")
    assert not_passed(outcomes) == []


def test_answers_are_the_fields_in_which_nodes_agree(tmp_path: Path) -> None:
    first: dict[str, Row] = {"api.case/0": [{"a": 1, "b": 2, "c": None}], "api.alone/0": [{"a": 1}]}
    other: dict[str, Row] = {"api.case/0": [{"a": 1, "b": 3}]}
    found = Answers.of("a broker", [first, other])
    assert found.rows == {"api.case/0": [{"a": 1}]}


@pytest.mark.parametrize("profile", [PROFILE, OLDER, NEWER])
def test_answers_are_read_as_they_are_written(profile: str, tmp_path: Path) -> None:
    found = Answers.read(profile)
    assert found is not None
    assert len(found.rows) > 1500
    found.write(tmp_path / "answers")
    folder = Path(__file__).parents[2] / "kraft_wire" / "conformance" / "profiles"
    kept = (folder / f"{profile}.answers.jsonl.gz").read_bytes()
    # Not the files: Python 3.12 on writes another header.
    assert gzip.decompress((tmp_path / "answers").read_bytes()) == gzip.decompress(kept)


def test_more_or_fewer_exchanges_than_recorded_are_not_compared(server: ServerProcess) -> None:
    node = targets(server.bootstrap)[Listener.BROKER]
    answers = Answers("a broker", {"api.case/0": [{"error_code": 1}]})
    assert answered("api.case", 0, node, []) == []
    answers.judge("api.case", 0, node, [])
