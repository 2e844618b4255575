"""A server without a free descriptor: who connects waits, and is served as soon as one is free."""

import os
import resource
import time
from pathlib import Path

from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.server.wire_client import WireClient
from tests.server_process import ServerProcess
from tests.waiting import until


def leave_no_descriptor(server: ServerProcess) -> None:
    """Set the limit to the lowest number that the server does not use: the next open fails.

    A number that the server uses only for a moment, as after its start, would be free again.
    """
    used = descriptors(server)
    steady_since = time.monotonic()
    while time.monotonic() < steady_since + 0.3:
        time.sleep(0.01)
        if used != (used := descriptors(server)):
            steady_since = time.monotonic()
    lowest = next(number for number in range(len(used) + 1) if number not in used)
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (lowest, hard))


def descriptors(server: ServerProcess) -> set[int]:
    """Return the descriptors that the server uses now."""
    return {int(name) for name in os.listdir(f"/proc/{server.pid}/fd")}


def refusals(server: ServerProcess) -> int:
    return server.log.read_text().count("accept_failed")


def wait_for_refusal(server: ServerProcess, before: int) -> None:
    """Wait until another accept has failed."""
    until(lambda: refusals(server) > before, lambda: "no accept failed")


def is_served(client: WireClient) -> bool:
    return client.call(ApiVersionsRequest(), 2, ApiVersionsResponse).error_code == 0


def test_clients_connect_again_as_soon_as_a_descriptor_is_free(tmp_path: Path) -> None:
    """Each time, not only the first; those that are connected are served all along."""
    with ServerProcess(tmp_path) as server:
        with WireClient(server.bootstrap) as steady:
            assert is_served(steady)
            going = WireClient(server.bootstrap)
            assert is_served(going)
            for _ in range(3):
                leave_no_descriptor(server)
                before = refusals(server)
                coming = WireClient(server.bootstrap)  # the kernel accepts it
                wait_for_refusal(server, before)
                header = coming.send(ApiVersionsRequest(), 2)
                assert is_served(steady)
                going.sock.close()
                assert coming.receive(ApiVersionsResponse, header).error_code == 0
                going = coming
            before = refusals(server)
            several = [WireClient(server.bootstrap) for _ in range(3)]
            begun = time.monotonic()
            wait_for_refusal(server, before)
            time.sleep(0.5)
            tries_max = 10 + 20 * (time.monotonic() - begun)
            assert refusals(server) - before < tries_max, "it tries now and then, not all the time"
            _, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (hard, hard))
            assert all(is_served(each) for each in several)
            for each in (going, *several):
                each.sock.close()
        assert server.log.read_text().count("Too_many_open_files") == refusals(server)


def test_a_server_without_a_descriptor_stops(tmp_path: Path) -> None:
    """Its listeners are closed while they wait to be listened to again."""
    with ServerProcess(tmp_path) as server, WireClient(server.bootstrap) as steady:
        assert is_served(steady)
        leave_no_descriptor(server)
        with WireClient(server.bootstrap) as coming:
            wait_for_refusal(server, 0)
            _, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (hard, hard))
            assert server.stop() == 0
            assert coming.is_closed()
        assert "Traceback" not in server.log.read_text()
