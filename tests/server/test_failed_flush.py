"""A disk that does not take a flush ends the process: exit code 70, one line, nothing repeated."""

import sys
from pathlib import Path

import pytest

from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from tests.server.wire_client import WireClient, one_batch, produce_request
from tests.server_process import ServerProcess

_BROKEN = 70
_PROGRAM = """
import errno, os, sys
real, flag = os.fdatasync, sys.argv.pop(1)

def failing(descriptor):
    if os.path.exists(flag):
        raise OSError(errno.EIO, "Input/output error")
    real(descriptor)

os.fdatasync = failing
from kraft_wire.cli.main import main
main()
"""


class ServerOnABadDisk(ServerProcess):
    """A server whose every fsync fails once the file `flag` exists."""

    @property
    def flag(self) -> Path:
        return self.directory / "flag"

    def command(self) -> list[str]:
        _, *arguments = super().command()
        return [sys.executable, "-c", _PROGRAM, str(self.flag), *arguments]


@pytest.mark.parametrize("flushed_by", ["a produce", "a later produce", "the metadata log"])
def test_process_stops_when_an_fsync_fails(tmp_path: Path, flushed_by: str) -> None:
    server = ServerOnABadDisk(tmp_path, overrides={"log.flush.interval.messages": "1"})
    server.start()
    try:
        with WireClient(server.bootstrap) as client:
            topic = client.topic("t")
            if flushed_by == "a later produce":  # of an epoch that the log has: nothing but a flush
                client.send(produce_request(topic, one_batch(b"x")), 9)
                assert client.receive_frame() is not None
            server.flag.touch()
            if flushed_by.endswith("produce"):
                client.send(produce_request(topic, one_batch(b"x")), 9)
            else:
                wanted = CreatableTopic(name="u", num_partitions=1, replication_factor=1)
                client.send(CreateTopicsRequest(topics=[wanted], timeout_ms=9_000), 7)
            assert client.receive_frame() is None
        assert server.wait() == _BROKEN
    finally:
        server.kill()
    log = server.log.read_text()
    (line,) = [line for line in log.splitlines() if " server stopped " in line]
    assert " FATAL server stopped clean=False " in line
    assert "fsync" in line
    assert "Traceback" not in log
