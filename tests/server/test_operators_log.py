"""What an operator learns from the log of a real node: levels, changes, floods, small disks."""

import os
import re
from pathlib import Path

import pytest

from kraft_wire.node.events.catalogue import LEVELS
from kraft_wire.wire.generated.metadata import MetadataRequest
from tests.process import DidNotStart
from tests.server.wire_client import WireClient
from tests.server_process import ServerProcess
from tests.small_disk import small_disk

FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ [a-z]+ [a-z_]+( \S+=.*)?")


class Leveled(ServerProcess):
    """A server with options and variables of its own."""

    def __init__(
        self,
        directory: Path,
        *options: str,
        overrides: dict[str, str] | None = None,
        **variables: str,
    ) -> None:
        super().__init__(directory, overrides=overrides)
        self.options = options
        self.environment = {**os.environ, **variables}

    def arguments(self) -> list[str]:
        return [*super().arguments(), *self.options]

    def events(self) -> list[list[str]]:
        """Return level, component and event of each line."""
        lines = [each for each in self.text.splitlines() if not each.startswith("kraft-wire: ")]
        assert [each for each in lines if not FORM.fullmatch(each)] == []
        return [each.split()[1:4] for each in lines]


def test_first_line_explains_the_reserve_and_changes_are_logged(tmp_path: Path) -> None:
    with Leveled(tmp_path) as server, WireClient(server.bootstrap) as client:
        client.topic("orders")
    first, *_ = server.text.splitlines()
    assert "INFO server starting release=" in first
    assert "reserve_bytes=67108864" in first
    assert "(storage.ballast.bytes)" in first
    events = server.events()
    for wanted in (
        ["INFO", "storage", "log_directory_opened"],
        ["INFO", "quorum", "role_changed"],
        ["INFO", "controller", "controller_active"],
        ["INFO", "metadata", "topic_created"],
        ["INFO", "server", "ready"],
    ):
        assert wanted in events
    assert not re.search(r"=-\d", server.text), "no negative internal ids"


@pytest.mark.parametrize(
    ("options", "variable", "least"),
    [
        (["--log-level", "warn"], "DEBUG", "WARN"),
        ([], "ERROR", None),
        ([], "DEBUG", "DEBUG"),
        ([], "LOUD", "INFO"),
    ],
)
def test_level_is_the_options_or_else_kafkas_variable(
    tmp_path: Path, options: list[str], variable: str, least: str | None
) -> None:
    variables = {"KAFKA_LOG4J_ROOT_LOGLEVEL": variable}
    with Leveled(tmp_path, *options, **variables) as server, WireClient(server.bootstrap) as client:
        client.topic("orders")
    events = server.events()
    written = [level for level, _, _ in events]
    assert min(written, key=LEVELS.__getitem__, default=None) == least
    assert (["WARN", "server", "unknown_log_level"] in events) == (variable == "LOUD")


def test_loggers_of_kafkas_variable_set_levels_of_components(tmp_path: Path) -> None:
    loggers = "org.apache.kafka.image=ERROR,network=DEBUG,kafka.log=LOUD,org.apache.zookeeper=INFO"
    variables = {"KAFKA_LOG4J_ROOT_LOGLEVEL": "WARN", "KAFKA_LOG4J_LOGGERS": loggers}
    with Leveled(tmp_path, **variables) as server, WireClient(server.bootstrap) as client:
        client.topic("orders")
    assert server.events() == [
        ["WARN", "server", "unknown_log_level"],
        ["WARN", "server", "unknown_loggers"],
        ["DEBUG", "network", "connection_opened"],
        ["DEBUG", "network", "connection_closed"],
    ]
    assert "value=kafka.log=LOUD used=none" in server.text
    assert "loggers=org.apache.zookeeper action=ignored" in server.text


def test_log_level_option_replaces_the_loggers(tmp_path: Path) -> None:
    with Leveled(tmp_path, "--log-level", "OFF", KAFKA_LOG4J_LOGGERS="kafka=DEBUG") as server:
        pass
    assert server.events() == []


def test_flood_of_refused_versions_is_ten_lines_a_second_and_a_count(tmp_path: Path) -> None:
    with Leveled(tmp_path) as server:
        for _ in range(40):
            with WireClient(server.bootstrap) as client:
                client.send_frame(b"\0\3\0\x63" + b"\0\0\0\1\xff\xff\0")
                assert client.is_closed()
    assert MetadataRequest.API_KEY == 3
    lines = [each for each in server.text.splitlines() if " rejected client=" in each]
    counts = re.findall(r"rejected_suppressed .* count=(\d+)", server.text)
    seconds = {each[:19] for each in lines}
    assert len(lines) <= 10 * (len(seconds) + 1)
    assert all("reason=version_not_served" in each for each in lines)
    assert len(lines) + sum(map(int, counts)) <= 40


def test_disk_that_is_too_small_is_refused_with_needed_and_free_bytes(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", mebibytes=32) as disk:
        server = ServerProcess(tmp_path / "node")
        server.directory.mkdir()
        server.data = disk / "data"
        with pytest.raises(DidNotStart) as refused:
            server.start()
        assert "the disk is too small: 68157440 bytes are needed, 33554432 of 33554432" in str(
            refused.value
        )
        assert not server.data.exists(), "nothing is made on it"
