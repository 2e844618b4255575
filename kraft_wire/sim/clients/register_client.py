"""Clients outside of the cluster: they write settings and quotas, get producer ids, and read back.

A client has one request in flight, trusts the last hint about the leader, asks another node after a
failure, and gives up after a while: then it is unknown whether its write happened. Its answers go
into `history`.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.sim.clients.link import ClientLink
from kraft_wire.sim.judge.history import History, Operation
from kraft_wire.sim.judge.ledger import register_of_config, register_of_quota
from kraft_wire.sim.scheduler import stream
from kraft_wire.sim.setup import BROKER_PORT, CONTROLLER_PORT
from kraft_wire.sim.stage import Stage
from kraft_wire.sim.traffic import Traffic
from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
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
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["CLIENT_METRICS", "RegisterClient"]

CLIENT_METRICS: Final = 16
_INTERVAL: Final = "interval.ms"
_INTERVAL_FIRST: Final = 1_000
_QUOTA: Final = "producer_byte_rate"
_SET: Final = 0
_KINDS: Final = ("write", "write", "write", "quota", "read", "read", "producer-id")


class RegisterClient:
    """Writes and reads registers, repeatedly, until it is stopped."""

    def __init__(self, stage: Stage, traffic: Traffic, history: History, number: int) -> None:
        self.stage = stage
        self.history = history
        self.number = number
        self.link = ClientLink(stage, traffic, -number)
        self._random = stream(stage.seed, "client", number)
        self._hint: int | None = None
        self._values = 0
        self.is_done = False
        self.think_us = 20_000
        self.timeout_us = 2_000_000

    def start(self) -> None:
        """Begin after a while."""
        self._later()

    def _later(self) -> None:
        delay_us = int(self._random.expovariate(1 / self.think_us)) + 1
        self.stage.scheduler.after(delay_us, self._go_on)

    def _go_on(self) -> None:
        if self.is_done or self.link.is_busy:
            return
        kind = self._random.choice(_KINDS)
        if kind == "producer-id" and not self.stage.setup.combined:
            kind = "write"
        getattr(self, "_" + kind.replace("-", "_"))()

    def _node(self) -> int:
        if self._hint is not None and self._random.random() < 0.9:
            return self._hint
        return self._random.choice(self.stage.setup.controllers)

    def _next_value(self) -> int:
        """Return a number that no client writes twice, small enough for an interval."""
        self._values += 1
        return _INTERVAL_FIRST + self._values * 64 + self.number

    # -- operations ------------------------------------------------------------------------------

    def _write(self) -> None:
        name = f"r{self._random.randrange(self.stage.setup.registers)}"
        value = str(self._next_value())
        config = AlterableConfig(name=_INTERVAL, config_operation=_SET, value=value)
        resource = AlterConfigsResource(
            resource_type=CLIENT_METRICS, resource_name=name, configs=[config]
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        register = register_of_config(CLIENT_METRICS, name, _INTERVAL)
        self._run(Operation(self.number, "write", register, value, self._node()), request)

    def _quota(self) -> None:
        user = f"u{self._random.randrange(self.stage.setup.registers)}"
        value = self._next_value()
        entity = [EntityData(entity_type="user", entity_name=user)]
        entry = EntryData(entity=entity, ops=[OpData(key=_QUOTA, value=float(value))])
        request = AlterClientQuotasRequest(entries=[entry])
        register = register_of_quota({"user": user}, _QUOTA)
        self._run(Operation(self.number, "write", register, f"{value:g}", self._node()), request)

    def _read(self) -> None:
        name = f"r{self._random.randrange(self.stage.setup.registers)}"
        resource = DescribeConfigsResource(
            resource_type=CLIENT_METRICS, resource_name=name, configuration_keys=[_INTERVAL]
        )
        request = DescribeConfigsRequest(resources=[resource])
        register = register_of_config(CLIENT_METRICS, name, _INTERVAL)
        self._run(Operation(self.number, "read", register, None, self._node()), request)

    def _producer_id(self) -> None:
        node_id = self._random.choice(self.stage.setup.combined)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        operation = Operation(self.number, "producer-id", ("producer-ids",), None, node_id)
        self._run(operation, request, BROKER_PORT)

    def _run(self, operation: Operation, request: Message, port: int = CONTROLLER_PORT) -> None:
        operation.invoked_us = self.stage.now_us
        self.history.invoked(operation)

        def then(response: Message | None) -> None:
            self._returned(operation, response)

        self.link.ask(operation.node_id, port, request, self.timeout_us, then)

    def _returned(self, operation: Operation, response: Message | None) -> None:
        operation.life, operation.served, operation.is_current = self.link.answered
        error, value = _outcome(response)
        if error is ErrorCode.NONE:
            self._hint = operation.node_id
            if operation.kind != "write":
                operation.value = value
        elif error is ErrorCode.NOT_CONTROLLER or error is None:
            self._hint = None
        outcome = "ok" if error is ErrorCode.NONE else _UNSURE.get(error, "failed")
        self.history.returned(operation, self.stage.now_us, outcome)
        self._later()


_UNSURE: Final = {
    None: "unknown",
    ErrorCode.NOT_CONTROLLER: "unknown",
    ErrorCode.REQUEST_TIMED_OUT: "unknown",
    ErrorCode.UNKNOWN_SERVER_ERROR: "unknown",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "unknown",
}
"""After these errors it is unknown whether a write happened; after other errors it did not."""


def _outcome(response: Message | None) -> tuple[ErrorCode | None, str | None]:
    """Return the error of an answer and the value read, None without an answer."""
    match response:
        case IncrementalAlterConfigsResponse():
            return ErrorCode(response.responses[0].error_code), None
        case AlterClientQuotasResponse():
            return ErrorCode(response.entries[0].error_code), None
        case DescribeConfigsResponse():
            result = response.results[0]
            shown = [c.value for c in result.configs if c.name == _INTERVAL and _is_set(c)]
            return ErrorCode(result.error_code), shown[0] if shown else None
        case InitProducerIdResponse():
            return ErrorCode(response.error_code), str(response.producer_id)
        case _:
            return None, None


def _is_set(config: object) -> bool:
    """Return whether a setting was written, and is not a default."""
    return getattr(config, "config_source", 0) != _DEFAULT_SOURCE


_DEFAULT_SOURCE: Final = 5
