"""The base of tools that keep something of their own group by hand.

The group has no members and no other client, so every answer follows from the answers before it.
After a write whose outcome is unknown the tool continues with another group. The requests are of
many versions, because tools are older than brokers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.coordinated_client import WRONG_NODE
from kraft_wire.sim.clients.tool import Tool
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["GROUP_IS_AS_LEFT", "GroupTool"]

GROUP_IS_AS_LEFT: Final = "S76 GroupIsAsLeft"


class GroupTool(Tool):
    """A tool whose subclasses know what its group must look like."""

    def __init__(self, context: ClientContext, number: int, topic: str) -> None:
        super().__init__(context, number, topic, "")
        self._groups_count = 0
        self.begin_group()

    def begin_group(self) -> None:
        """Take another group, which does not exist yet."""
        self._groups_count += 1
        self.group = f"tool-{self.number}-{self._groups_count}"
        self.forget()

    @abstractmethod
    def forget(self) -> None:
        """Note that the group does not exist."""

    @abstractmethod
    def must_exist(self) -> bool:
        """Return whether the group certainly exists."""

    @abstractmethod
    def may_exist(self) -> bool:
        """Return whether the group exists, or may have expired."""

    @abstractmethod
    def state(self) -> object:
        """Return what the group holds, for the text of a violation."""

    def delete_group(self) -> None:
        """Delete the group, and judge whether it was there."""

        def done(node_id: int, response: Message) -> bool:
            assert isinstance(response, DeleteGroupsResponse), response
            code = response.results[0].error_code
            if self.is_refused(code):
                return True
            if code == ErrorCode.GROUP_ID_NOT_FOUND:
                self.check(node_id, not self.must_exist(), "is not found")
            elif code != ErrorCode.NONE:
                return False
            else:
                self.check(node_id, self.may_exist(), "could be deleted")
            self.forget()
            return True

        version = self.version_of(DeleteGroupsRequest)
        self.write(DeleteGroupsRequest(groups_names=[self.group]), version, done)

    def check(self, node_id: int, holds: bool, *facts: object) -> None:
        """Judge one answer."""
        self.context.judge.looked[GROUP_IS_AS_LEFT] += 1
        if not holds:
            raise Violation(GROUP_IS_AS_LEFT, node_id, self.group, *facts, "left as", self.state())

    def write(self, request: Message, version: int, done: Callable[[int, Message], bool]) -> None:
        """Send a change; `done` returns whether it is known to have happened.

        After a refusal that is unknown too: a broker answers COORDINATOR_NOT_AVAILABLE where the
        ISR was too slow for its record, and NOT_COORDINATOR where it lost the group meanwhile.
        """

        def answered(node_id: int, response: Message | None) -> None:
            if response is None or not done(node_id, response) or self.coordinator is None:
                self.begin_group()
                self.again()
            else:
                self.later(self.think_us)

        self._ask(request, version, answered)

    def question(
        self, request: Message, version: int, judge: Callable[[int, Message], None]
    ) -> None:
        """Send a request that changes nothing; `judge` gets the answer, if there is one."""

        def answered(node_id: int, response: Message | None) -> None:
            if response is None:
                self.again()
                return
            judge(node_id, response)
            self.later(self.think_us)

        self._ask(request, version, answered)

    def _ask(
        self, request: Message, version: int, then: Callable[[int, Message | None], None]
    ) -> None:
        self.context.history.counts[f"tool {request.NAME} v{version}"] += 1
        self.ask_coordinator(request, then, version)

    def is_refused(self, code: int) -> bool:
        """Return whether the broker is not the coordinator, or has just ceased to be."""
        if ErrorCode(code) not in WRONG_NODE:
            return False
        self.coordinator = None
        return True

    def version_of(self, request: type[Message]) -> int:
        """Draw a version of a request."""
        return self.random.randint(request.MIN_VERSION, request.MAX_VERSION)

    def some_partition(self) -> int:
        """Draw a partition of the topic."""
        return self.random.choice(list(self.leaders))
