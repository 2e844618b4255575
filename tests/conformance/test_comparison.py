"""Two brokers compared: what they do differently is found, and nothing else is."""

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraft_wire.conformance.case import all_cases
from kraft_wire.conformance.command import app
from kraft_wire.conformance.profile import read_profile
from kraft_wire.conformance.recording import Recording, UnreadableRecording
from kraft_wire.conformance.run import rows_of
from tests.conformance.broken_broker import Relay
from tests.conformance.recording import PROFILE, RECORDING
from tests.conformance.test_suite import another_offset, server
from tests.server_process import ServerProcess
from tests.tidiness import CHECKOUT

__all__ = ["server"]

CASE = "list_offsets.latest/11"


def test_recording_has_every_row_of_its_profile() -> None:
    """Otherwise `make record-apache` is due."""
    recorded = [each.name for each in Recording.read(RECORDING).rows]
    assert recorded == [each.name for each in rows_of(all_cases(), read_profile(PROFILE))]


def test_compared_brokers_differ_in_the_field_that_one_changed(
    server: ServerProcess, tmp_path: Path
) -> None:
    with Relay(server.bootstrap, another_offset) as relay:
        options = ["--compare", server.bootstrap, relay.address, "--only", CASE]
        done = CliRunner().invoke(app, [*options, "--json", str(tmp_path / "report")])
    as_json = json.loads((tmp_path / "report").read_text())
    assert done.exit_code == 1
    assert (as_json["left"], as_json["right"]) == (server.bootstrap, relay.address)
    assert [each["left"] for each in as_json["differences"]] == ["passed", "3"]
    assert [each["right"] for each in as_json["differences"]] == ["failed", "4"]
    assert done.output.splitlines() == [
        f"(verdict)  ({CASE})",
        f"  {server.bootstrap}: passed",
        f"  {relay.address}: failed",
        f"ListOffsets topics[0].partitions[0].offset  ({CASE})",
        f"  {server.bootstrap}: 3",
        f"  {relay.address}: 4",
        f"2 differences between {server.bootstrap} and {relay.address}",
    ]


def test_replay_judges_a_broker_against_what_another_answered(
    server: ServerProcess, tmp_path: Path
) -> None:
    file = tmp_path / "recorded"
    only = ["--only", CASE]
    judged = ["--bootstrap-server", server.bootstrap]
    assert CliRunner().invoke(app, [*judged, *only, "--record", str(file)]).exit_code == 0
    replay = [*only, "--replay", str(file)]
    assert CliRunner().invoke(app, [*judged, *replay]).exit_code == 0
    with Relay(server.bootstrap, another_offset) as relay:
        done = CliRunner().invoke(app, ["--bootstrap-server", relay.address, *replay])
    assert done.exit_code == 1
    assert "ListOffsets topics[0].partitions[0].offset" in done.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--compare", "127.0.0.1:1", "127.0.0.1:1"], "cannot connect to 127.0.0.1:1"),
        (["--compare", "a:1", "b:1", "--replay", "file"], "--replay is one"),
        (["--replay", str(CHECKOUT / "Makefile")], "is not a recording"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(options: list[str], words: str) -> None:
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 2
    (line,) = done.output.splitlines()
    assert words in line


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(gzip.compress(b"x")[:-9] + bytes(9), id="spoilt"),
        pytest.param(gzip.compress(b"[" * 9_999), id="deep"),
        pytest.param(b"\x1f\x8b", id="cut off"),
    ],
)
def test_another_file_is_no_recording(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(UnreadableRecording, match="is not a recording: "):
        Recording.read(file)
