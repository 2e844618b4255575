"""Changes of configuration from a client that follows the leader and keeps what it was promised.

Registers are client-metrics subscriptions, of which there may be any number without a broker; each
change sets `interval.ms` of one to a number higher than before. What is lost or goes back is seen
by `lost`. One change at a time, in a thread of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.server.wire_client import WireClient

CLIENT_METRICS = 16
KEY = "interval.ms"
FIRST_VALUE = 1_000
REGISTERS = 24
ANSWER_SECONDS_MAX = 4.0
REPLAY_SECONDS_MAX = 20.0


def change(client: WireClient, register: str, value: int) -> int:
    """Set one register; returns the error code."""
    config = AlterableConfig(name=KEY, config_operation=0, value=str(value))
    resource = AlterConfigsResource(
        resource_type=CLIENT_METRICS, resource_name=register, configs=[config]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    return client.call(request, 1, IncrementalAlterConfigsResponse).responses[0].error_code


def registers(address: str, names: list[str]) -> dict[str, int]:
    """What a controller says the registers hold."""
    wanted = [
        DescribeConfigsResource(
            resource_type=CLIENT_METRICS, resource_name=name, configuration_keys=[KEY]
        )
        for name in names
    ]
    with WireClient(address) as client:
        answer = client.call(DescribeConfigsRequest(resources=wanted), 4, DescribeConfigsResponse)
    return {
        each.resource_name: int(each.configs[0].value or 0)
        for each in answer.results
        if each.configs
    }


class Load(threading.Thread):
    """One client; `addresses` are asked in turn until one of them leads."""

    def __init__(self, addresses: Callable[[], list[str]], pause_s: float = 0.01) -> None:
        super().__init__(daemon=True)
        self.acknowledged: dict[str, int] = {}
        self.attempted: dict[str, int] = {}
        self.changes = 0
        self.refused: dict[str, int] = {}
        self._addresses = addresses
        self._pause_s = pause_s
        self._ends = threading.Event()
        self._client: WireClient | None = None
        self._turn = 0

    def run(self) -> None:
        """Change one register after the other until the end."""
        number = 0
        while not self._ends.is_set():
            register, value = f"r-{number % REGISTERS}", FIRST_VALUE + number
            self.attempted[register] = value
            if self._try(register, value):
                self.acknowledged[register] = value
                self.changes += 1
            number += 1
            time.sleep(self._pause_s)
        self._close()

    def finish(self) -> None:
        """Stop after the change under way."""
        self._ends.set()
        self.join(30)
        assert not self.is_alive(), "the load does not end"

    def lost(self, address: str) -> list[str]:
        """Promises that a controller does not keep."""
        names = sorted(self.acknowledged)
        found = registers(address, names) if names else {}
        return [
            f"{name}: promised {self.acknowledged[name]}, found {found.get(name)}"
            for name in names
            if not self.acknowledged[name] <= found.get(name, 0) <= self.attempted[name]
        ]

    def lost_for_good(self, address: str) -> list[str]:
        """The same after a while: a controller shows what is committed once it has replayed it."""
        assert not self.is_alive(), "the load goes on"
        deadline = time.monotonic() + REPLAY_SECONDS_MAX
        while True:
            try:
                lost = self.lost(address)
            except (OSError, AssertionError) as problem:
                lost = [f"no answer from {address}: {problem}"]
            if not lost or time.monotonic() > deadline:
                return lost
            time.sleep(0.1)

    def _try(self, register: str, value: int) -> bool:
        """Try once, at the node that was right the last time; after a failure at the next."""
        try:
            if self._client is None:
                self._client = self._connected()
            code = change(self._client, register, value)
        except (OSError, AssertionError):
            self._refuse("no answer")
            return False
        if code != ErrorCode.NONE:
            self._refuse(ErrorCode(code).name)
            return False
        return True

    def _refuse(self, why: str) -> None:
        self.refused[why] = self.refused.get(why, 0) + 1
        self._turn += 1
        self._close()

    def _connected(self) -> WireClient:
        addresses = self._addresses()
        if not addresses:
            raise ConnectionError("nobody is there")
        client = WireClient(addresses[self._turn % len(addresses)], client_id="load")
        client.sock.settimeout(ANSWER_SECONDS_MAX)
        return client

    def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.sock.close()
