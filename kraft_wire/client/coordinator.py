"""Requests to a group's coordinator, found and found again until a deadline (KIP-62, KIP-394).

It uses a separate connection, because a JoinGroup may wait for a whole rebalance. Requests carry
topic names, never ids.
"""

from collections.abc import Callable
from typing import Final, Self, TypeVar

from kraft_wire.client.cluster import ClusterClient, ClusterRefused, RetryDeadline, connect
from kraft_wire.client.connection import BrokerConnection, BrokerConnectionError, NotAuthenticated
from kraft_wire.client.refused import one_line
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["ELSEWHERE", "GroupCoordinator"]

R = TypeVar("R", bound=Message)

ELSEWHERE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors after which the coordinator is looked for again."""
_ONE_KEY_VERSION_MAX: Final = 3


class GroupCoordinator:
    """The coordinator of one group."""

    def __init__(self, cluster: ClusterClient, group: str) -> None:
        self._cluster = cluster
        self.group = group
        self._connection: BrokerConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def address(self) -> str:
        """Where the coordinator is, once it was asked."""
        return "" if self._connection is None else self._connection.address

    def serves(self, request: Message) -> bool:
        """Whether the last used coordinator supports a request."""
        assert self._connection is not None, "no request is outstanding"
        try:
            self._connection.version_of(request)
        except BrokerConnectionError:
            return False
        return True

    def send(
        self,
        request: Message,
        response: type[R],
        code_of: Callable[[R], int],
        *,
        at_most: int | None = None,
        seconds: float | None = None,
    ) -> R:
        """Send a request until its error is not retriable; return the answer.

        `seconds` is how long one answer may take. Errors: ClusterRefused at the deadline.
        """
        patience = RetryDeadline(self._cluster.settings.deadline_seconds)
        while True:
            try:
                connection = self._found()
                connection.wait_at_most(seconds or self._cluster.settings.request_seconds)
                version = connection.version_of(request, at_most=at_most)
                answer = connection.send(request, response, version=version)
                code = code_of(answer)
                if code not in ELSEWHERE:
                    return answer
                problem = error_name(code)
            except NotAuthenticated as error:
                raise ClusterRefused(str(error)) from error
            except BrokerConnectionError as error:
                problem = str(error)
                self._cluster.forget()
            if patience.is_over:
                raise ClusterRefused(f"group {self.group}: {problem}")
            self.close()
            patience.pause()

    def _found(self) -> BrokerConnection:
        """Return a connection to the coordinator. Errors: BrokerConnectionError, ClusterRefused."""
        if self._connection is None:
            request = FindCoordinatorRequest(key=self.group, key_type=0)
            broker = self._cluster.any_broker()
            version = broker.version_of(request, at_most=_ONE_KEY_VERSION_MAX)
            answer = broker.send(request, FindCoordinatorResponse, version=version)
            if answer.error_code in ELSEWHERE:
                raise BrokerConnectionError(f"no coordinator: {error_name(answer.error_code)}")
            if answer.error_code:
                words = f"{error_name(answer.error_code)} {one_line(answer.error_message or '')}"
                raise ClusterRefused(f"group {self.group}: {words}")
            self._connection = connect(self._cluster.settings, f"{answer.host}:{answer.port}")
        return self._connection
