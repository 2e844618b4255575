"""Partitions that exist in the metadata log only: a broker that registers and keeps no log.

A hundred thousand directories would prove nothing about metadata. A broker that is only a
connection to the active controller gets them assigned instead; when its heartbeats stop, it is
fenced, and every partition changes its leader, which writes as many records again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from kraft_wire.wire.generated.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from kraft_wire.wire.generated.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.apache.node import CLUSTER_ID
from tests.server.wire_client import WireClient

BROKER_ID = 100
SECONDS_MAX = 120
FEATURES = {
    "metadata.version": (7, 30),
    "kraft.version": (0, 1),
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}
_PER_TOPIC = 4_000
"""Fewer than the records that a controller writes for one request."""


class LoglessBroker:
    """A registered broker with one connection to the active controller, whichever that is."""

    def __init__(self, controllers: Sequence[str]) -> None:
        self._controllers = controllers
        self._client, self._epoch = self._register(controllers)

    def close(self) -> None:
        """Send nothing any more: it is fenced when its session is over."""
        self._client.sock.close()

    def heartbeat(self, *, fenced: bool = False) -> bool:
        """Say that it lives and knows everything, and what it wants; whether it is unfenced.

        It is not where another controller is active by now, with which it registers again.
        """
        request = BrokerHeartbeatRequest(
            broker_id=BROKER_ID,
            broker_epoch=self._epoch,
            current_metadata_offset=1 << 40,
            want_fence=fenced,
        )
        try:
            answer = self._client.call(request, 1, BrokerHeartbeatResponse)
            error, is_fenced = answer.error_code, answer.is_fenced
        except OSError:
            error, is_fenced = ErrorCode.NOT_CONTROLLER, True
        if error == ErrorCode.NOT_CONTROLLER:
            self._client, self._epoch = self._register(self._controllers)
            return False
        assert error == ErrorCode.NONE, error
        return not is_fenced

    def unfence(self) -> None:
        """Wait until it is unfenced."""
        deadline = time.monotonic() + SECONDS_MAX
        while not self.heartbeat():
            assert time.monotonic() < deadline, "the broker stays fenced"
            time.sleep(0.1)

    def create(self, name: str, partitions: int) -> None:
        """Create a topic whose every partition is its own."""
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=[BROKER_ID])
            for index in range(partitions)
        ]
        topic = CreatableTopic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=assignments
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
        deadline = time.monotonic() + SECONDS_MAX
        fine = {ErrorCode.NONE}
        while (said := self._asked_to_create(request))[0] not in fine:
            assert said[0] == ErrorCode.NOT_CONTROLLER, said
            assert time.monotonic() < deadline, said
            fine.add(ErrorCode.TOPIC_ALREADY_EXISTS)  # the controller before may have made it
            self.unfence()

    def _asked_to_create(self, request: CreateTopicsRequest) -> tuple[int, str | None]:
        """The error and its message; who is gone is no controller."""
        try:
            (result,) = self._client.call(request, 7, CreateTopicsResponse).topics
        except OSError as error:
            return ErrorCode.NOT_CONTROLLER, str(error)
        return result.error_code, result.error_message

    def _register(self, controllers: Sequence[str]) -> tuple[WireClient, int]:
        """Return a connection to the controller that takes the registration, and the epoch."""
        request = BrokerRegistrationRequest(
            broker_id=BROKER_ID,
            cluster_id=CLUSTER_ID,
            incarnation_id=b"logless-broker-1",
            listeners=[Listener(name="PLAINTEXT", host="127.0.0.1", port=9)],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in FEATURES.items()
            ],
            log_dirs=[b"logless-director"],
            previous_broker_epoch=-1,
        )
        deadline = time.monotonic() + SECONDS_MAX
        refused: list[int] = []
        while time.monotonic() < deadline:
            for address in controllers:
                with suppress(OSError):
                    client = WireClient(address)
                    client.sock.settimeout(SECONDS_MAX)
                    answer = client.call(request, 4, BrokerRegistrationResponse)
                    if answer.error_code == ErrorCode.NONE:
                        return client, answer.broker_epoch
                    refused.append(answer.error_code)
                    client.sock.close()
            time.sleep(0.2)
        raise AssertionError(f"no controller takes the registration: {refused[-3:]}")


def create_many_partitions(controllers: Sequence[str], count: int) -> None:
    """Have `count` partitions written to the metadata log, in topics `many-0`, `many-1`, …"""
    broker = LoglessBroker(controllers)
    broker.unfence()
    for number, first in enumerate(range(0, count, _PER_TOPIC)):
        broker.create(f"many-{number}", min(_PER_TOPIC, count - first))
        broker.heartbeat()
    broker.close()
