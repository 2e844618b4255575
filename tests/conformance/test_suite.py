"""The conformance suite: a proper broker passes it, and a changed answer is found and named."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from kraft_wire.client import BrokerConnection
from kraft_wire.conformance.case import Listener, all_cases
from kraft_wire.conformance.command import app
from kraft_wire.conformance.profile import profile_names, read_profile
from kraft_wire.conformance.verdict import Outcome, Verdict
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.create_topics import CreateTopicsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.generated.list_offsets import ListOffsetsResponse
from kraft_wire.wire.generated.messages import MESSAGES
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataResponse
from kraft_wire.wire.header import encode_response_header
from tests.conformance.broken_broker import Change, Relay
from tests.conformance.judged_nodes import (
    judged,
    not_passed,
    targets,
    three_apache_nodes,
    three_nodes_of_ours,
)
from tests.server_process import ServerProcess
from tests.tidiness import CHECKOUT

LIST_OFFSETS = MESSAGES["ListOffsetsRequest"].api_key
CASE = "list_offsets.latest"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("conformance")) as running:
        yield running


def failed(outcomes: list[Outcome]) -> list[str]:
    """Leave out what needs an older epoch than the first, which a young quorum does not have."""
    return not_passed([each for each in outcomes if each.verdict is not Verdict.NOT_SUPPORTED])


@pytest.mark.java
def test_older_apache_passes_every_case_of_its_profile(
    older_apache_outcomes: list[Outcome],
) -> None:
    assert not_passed(older_apache_outcomes) == []


@pytest.mark.java
def test_newer_apache_passes_what_it_has_changed(newer_apache_outcomes: list[Outcome]) -> None:
    assert len(newer_apache_outcomes) > 100
    assert not_passed(newer_apache_outcomes) == []


@pytest.mark.java
def test_active_controller_of_three_of_apaches_passes_every_case(tmp_path: Path) -> None:
    """What asks a broker, and older versions, are judged on a single node."""
    with three_apache_nodes(tmp_path) as node:
        outcomes = judged(node, only_newest=True, listener=Listener.CONTROLLER)
    assert outcomes
    assert failed(outcomes) == []


def test_active_controller_of_three_of_ours_passes_every_case(tmp_path: Path) -> None:
    with three_nodes_of_ours(tmp_path) as node:
        assert failed(judged(node, only_newest=True)) == []


def another_offset(api_key: int, version: int, response: bytes) -> bytes:
    """Answer ListOffsets with an offset that is one too large."""
    if api_key != LIST_OFFSETS:
        return response
    head = len(encode_response_header(api_key, version, 0))
    message, _ = ListOffsetsResponse.decode(response, version, head)
    message.topics[0].partitions[0].offset += 1
    return response[:head] + message.encode(version)


def no_topics(api_key: int, version: int, response: bytes) -> bytes:
    """Answer ListOffsets without the topic that was asked for."""
    if api_key != LIST_OFFSETS:
        return response
    head = len(encode_response_header(api_key, version, 0))
    return response[:head] + ListOffsetsResponse(topics=[]).encode(version)


def closed(api_key: int, version: int, response: bytes) -> bytes | None:
    return None if api_key == LIST_OFFSETS else response


def longer(api_key: int, version: int, response: bytes) -> bytes:
    return response + b"\0" if api_key == LIST_OFFSETS else response


def cut_off(api_key: int, version: int, response: bytes) -> bytes:
    return response[:-5] if api_key == LIST_OFFSETS else response


def other_correlation_id(api_key: int, version: int, response: bytes) -> bytes:
    return bytes(4) + response[4:] if api_key == LIST_OFFSETS else response


@pytest.mark.parametrize(
    ("change", "expected", "seen", "path"),
    [
        (another_offset, "3", "4", "topics[0].partitions[0].offset"),
        (no_topics, "Timestamp -1 returns", "a response that the case cannot follow", ""),
        (closed, "a ListOffsetsResponse", "the connection was closed", ""),
        (longer, "the end of the frame at byte ", "1 more", ""),
        (cut_off, "a ListOffsetsResponse", "a malformed frame", ""),
        (other_correlation_id, "", "0", "header.correlation_id"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_changed_response_is_found_and_named(
    server: ServerProcess, change: Change, expected: str, seen: str, path: str
) -> None:
    with Relay(server.bootstrap, change) as relay:
        outcomes = judged(targets(relay.address), f"{CASE}/11")
    (outcome,) = outcomes
    assert outcome.verdict is Verdict.FAILED
    assert outcome.expected.startswith(expected)
    assert outcome.seen.startswith(seen)
    assert outcome.path == path
    assert outcome.exchanges, "what was sent and received is kept"


def refused_topics(api_key: int, version: int, response: bytes) -> bytes:
    """Answer CreateTopics with POLICY_VIOLATION."""
    if api_key != CreateTopicsResponse.API_KEY:
        return response
    head = len(encode_response_header(api_key, version, 0))
    message, _ = CreateTopicsResponse.decode(response, version, head)
    message.topics[0].error_code = 44
    return response[:head] + message.encode(version)


def test_no_row_gets_the_first_producer_id_of_a_cluster(tmp_path: Path) -> None:
    """It is 0, which can also mean none."""
    with ServerProcess(tmp_path) as fresh:
        judged(targets(fresh.bootstrap), f"{CASE}/11")
        with BrokerConnection(fresh.bootstrap) as connection:
            request = InitProducerIdRequest(
                transactional_id=None, producer_id=-1, producer_epoch=-1
            )
            found = connection.send(request, InitProducerIdResponse)
    assert (found.error_code, found.producer_id) == (0, 1)


def test_topics_of_cases_are_deleted(server: ServerProcess) -> None:
    done = CliRunner().invoke(app, ["--bootstrap-server", server.bootstrap, "--only", CASE])
    assert done.exit_code == 0
    with BrokerConnection(server.bootstrap) as connection:
        found = connection.send(MetadataRequest(topics=None), MetadataResponse)
    assert [each.name for each in found.topics if not each.is_internal] == []


def test_case_whose_preparation_is_refused_is_not_supported(server: ServerProcess) -> None:
    with Relay(server.bootstrap, refused_topics) as relay:
        (outcome,) = judged(targets(relay.address), f"{CASE}/11")
    assert outcome.verdict is Verdict.NOT_SUPPORTED
    assert outcome.seen.startswith("CreateTopics of conform-")
    assert outcome.seen.endswith(" failed with error 44")


def test_reports_show_the_field_at_fault_and_how_to_run_it_again(
    server: ServerProcess, tmp_path: Path
) -> None:
    files = {kind: tmp_path / f"report.{kind}" for kind in ("json", "junit", "html")}
    with Relay(server.bootstrap, another_offset) as relay:
        options = ["--bootstrap-server", relay.address, "--only", f"{CASE}/11"]
        for kind, file in files.items():
            options += [f"--{kind}", str(file)]
        done = CliRunner().invoke(app, options)
    assert done.exit_code == 1
    again = f"kraft-wire conform --bootstrap-server {relay.address} --only {CASE}/11"
    assert again in done.output
    marked = [line for line in done.output.splitlines() if line.lstrip().startswith(">>")]
    assert len(marked) == 1
    assert "topics[0].partitions[0].offset = 4" in marked[0]
    (row,) = json.loads(files["json"].read_text())["rows"]
    assert (row["verdict"], row["run_again"]) == ("failed", again)
    failure = ElementTree.parse(files["junit"]).find(".//failure")
    assert failure is not None
    assert "topics[0].partitions[0].offset" in (failure.text or "")
    assert "<mark>" in files["html"].read_text()


def test_api_that_a_broker_does_not_offer_is_not_supported(server: ServerProcess) -> None:
    outcomes = judged(targets(server.bootstrap), "describe_quorum")
    assert {each.verdict for each in outcomes} == {Verdict.NOT_SUPPORTED}


def test_broker_that_refuses_to_list_its_versions_is_not_judged(server: ServerProcess) -> None:
    def refused(api_key: int, version: int, response: bytes) -> bytes:
        is_list = api_key == ApiVersionsRequest.API_KEY
        return (
            response[:4] + struct.pack(">hi", ErrorCode.INVALID_REQUEST, 0) if is_list else response
        )

    with Relay(server.bootstrap, refused) as relay:
        result = CliRunner().invoke(app, ["--bootstrap-server", relay.address])
    assert result.exit_code == 2
    assert "INVALID_REQUEST" in result.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--bootstrap-server", "nowhere"], "'nowhere' is not HOST:PORT"),
        (["--bootstrap-server", "127.0.0.1:1"], "cannot connect to 127.0.0.1:1"),
        (["--profile", "kafka"], "unknown profile 'kafka'; known: apache-3.9, apache-4.3, "),
        (["--only", "no.such.case"], "no case of profile apache-4.3 matches no.such.case"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(options: list[str], words: str) -> None:
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 2
    (line,) = done.output.splitlines()
    assert words in line


def test_every_case_states_source_expectation_and_steps() -> None:
    cases = all_cases()
    assert len({each.name for each in cases}) == len(cases) >= 230
    for each in cases:
        assert each.source, each.name
        assert each.steps, each.name
        assert each.expectation.endswith("."), each.name
    rows = {f"{each.name}/{n}" for each in cases for n in range(*each.versions)}
    rows |= {f"{each.name}/{each.versions[1]}" for each in cases} | {each.name for each in cases}
    for name in profile_names():
        assert read_profile(name).excluded.keys() <= rows
    assert profile_names() == ["apache-3.9", "apache-4.3", "apache-4.4", "minimal"]


def test_page_lists_every_module_of_cases() -> None:
    page = (CHECKOUT / "docs" / "CONFORMANCE.md").read_text()
    for name in {each.name.partition(".")[0] for each in all_cases()}:
        assert f"`{name}`" in page, name
