"""Clients that write settings and quotas, draw producer ids, and read back what they wrote.

Each has one request under way and keeps what it asked and was told with the times. A read is made
linearizable by its client: it first writes a register of its own at the node that it will ask, and
once that is acknowledged, the node shows everything that was acknowledged before the read began.
A register lives for one cycle, so that the search for an order stays short.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count

from kraft_wire.sim.judge.history import Operation
from kraft_wire.sim.judge.ledger import PRODUCER_IDS, register_of_config, register_of_quota
from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tests.chaos.quorum import Member
from tests.mixed.load import CLIENT_METRICS, FIRST_VALUE, KEY, change
from tests.server.wire_client import WireClient

PATIENCE_S = 2.5
PAUSE_S = 0.02
STAYING = 0.9
REGISTERS = 2
QUOTA = "producer_byte_rate"
DEFAULT_SOURCE = 5
KINDS = ("config", "config", "quota", "quota", "read", "read", "read-quota", "producer-id")
UNSURE = {
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
"""After these nobody knows whether a write happened; after other errors it did not."""


@dataclass
class Shared:
    """What all clients have in common."""

    members: Mapping[int, Member]
    cycle: int = 0
    values: count[int] = field(default_factory=lambda: count(FIRST_VALUE))
    """No value is written twice."""
    ends: threading.Event = field(default_factory=threading.Event)


class ChaosClient(threading.Thread):
    """One client; `operations` may be read once it has ended."""

    def __init__(self, number: int, shared: Shared, seed: int) -> None:
        super().__init__(daemon=True)
        self.number = number
        self.operations: list[Operation] = []
        self._shared = shared
        self._draw = random.Random(f"{seed} {number}")
        self._open: dict[str, WireClient] = {}
        self._hint: int | None = None

    def run(self) -> None:
        """Ask one thing after the other until the end."""
        actions: dict[str, Callable[[Member], bool]] = {
            "config": self._write_config,
            "quota": self._write_quota,
            "read": self._read_config,
            "read-quota": self._read_quota,
            "producer-id": self._producer_id,
        }
        while not self._shared.ends.is_set():
            member = self._member()
            if actions[self._draw.choice(KINDS)](member):
                self._hint = member.node_id
            else:
                self._hint = None
            time.sleep(PAUSE_S)
        for client in self._open.values():
            client.sock.close()

    def _member(self) -> Member:
        members = self._shared.members
        if self._hint is not None and self._draw.random() < STAYING:
            return members[self._hint]
        return members[self._draw.choice(list(members))]

    def _any_name(self) -> str:
        return f"r{self._shared.cycle}-{self._draw.randrange(REGISTERS)}"

    # -- operations ------------------------------------------------------------------------------

    def _write_config(self, member: Member, name: str | None = None) -> bool:
        name, value = name or self._any_name(), next(self._shared.values)
        register = register_of_config(CLIENT_METRICS, name, KEY)
        operation = self._begun(member, "write", register, str(value))
        return self._do(
            operation, member.address, lambda client: (change(client, name, value), None)
        )

    def _write_quota(self, member: Member) -> bool:
        user, value = self._any_name(), next(self._shared.values)
        entity = [EntityData(entity_type="user", entity_name=user)]
        entry = EntryData(entity=entity, ops=[OpData(key=QUOTA, value=float(value))])
        request = AlterClientQuotasRequest(entries=[entry])

        def ask(client: WireClient) -> tuple[int, str | None]:
            answer = client.call(request, 1, AlterClientQuotasResponse)
            return answer.entries[0].error_code, None

        register = register_of_quota({"user": user}, QUOTA)
        return self._do(self._begun(member, "write", register, f"{value:g}"), member.address, ask)

    def _read_config(self, member: Member) -> bool:
        name = self._any_name()

        resource = DescribeConfigsResource(
            resource_type=CLIENT_METRICS, resource_name=name, configuration_keys=[KEY]
        )

        def ask(client: WireClient) -> tuple[int, str | None]:
            request = DescribeConfigsRequest(resources=[resource])
            (result,) = client.call(request, 4, DescribeConfigsResponse).results
            shown = [each.value for each in result.configs if each.config_source != DEFAULT_SOURCE]
            return result.error_code, shown[0] if shown else None

        operation = self._synchronised(member, register_of_config(CLIENT_METRICS, name, KEY))
        return operation is not None and self._do(operation, member.address, ask)

    def _read_quota(self, member: Member) -> bool:
        user = self._any_name()
        component = ComponentData(entity_type="user", match_type=0, match=user)
        request = DescribeClientQuotasRequest(components=[component], strict=True)

        def ask(client: WireClient) -> tuple[int, str | None]:
            answer = client.call(request, 1, DescribeClientQuotasResponse)
            shown = [each.value for entry in answer.entries or [] for each in entry.values]
            return answer.error_code, f"{shown[0]:g}" if shown else None

        operation = self._synchronised(member, register_of_quota({"user": user}, QUOTA))
        return operation is not None and self._do(operation, member.client_address, ask)

    def _producer_id(self, member: Member) -> bool:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

        def ask(client: WireClient) -> tuple[int, str | None]:
            answer = client.call(request, 4, InitProducerIdResponse)
            return answer.error_code, str(answer.producer_id)

        operation = self._begun(member, "producer-id", PRODUCER_IDS, None)
        return self._do(operation, member.client_address, ask)

    # -- asking ----------------------------------------------------------------------------------

    def _synchronised(self, member: Member, register: tuple[str, ...]) -> Operation | None:
        """Begin a read at a node that is made to have everything; None where it cannot."""
        operation = Operation(self.number, "read", register, None, member.node_id)
        operation.invoked_us, operation.is_current = _now_us(), True
        if not self._write_config(member, f"c{self._shared.cycle}-{self.number}"):
            return None
        self.operations.append(operation)
        return operation

    def _begun(
        self, member: Member, kind: str, register: tuple[str, ...], value: str | None
    ) -> Operation:
        operation = Operation(self.number, kind, register, value, member.node_id)
        operation.invoked_us = _now_us()
        self.operations.append(operation)
        return operation

    def _do(
        self,
        operation: Operation,
        address: str,
        ask: Callable[[WireClient], tuple[int, str | None]],
    ) -> bool:
        """Ask, and note what came of it; a connection that failed is not used again."""
        value = None
        try:
            error, value = ask(self._connection(address))
            operation.outcome = "ok" if error == ErrorCode.NONE else "failed"
            if error in UNSURE:
                operation.outcome = "unknown"
        except (OSError, AssertionError):
            operation.outcome = "unknown"
            client = self._open.pop(address, None)
            if client is not None:
                client.sock.close()
        operation.returned_us = _now_us()
        operation.life, operation.served = (self.number, 0), len(self.operations)
        if operation.outcome == "ok" and operation.kind != "write":
            operation.value = value
        return operation.outcome == "ok"

    def _connection(self, address: str) -> WireClient:
        client = self._open.get(address)
        if client is None:
            client = self._open[address] = WireClient(address, client_id=f"chaos-{self.number}")
            client.sock.settimeout(PATIENCE_S)
        return client


def _now_us() -> int:
    return time.monotonic_ns() // 1_000
