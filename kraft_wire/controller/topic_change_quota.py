"""The quota on created and deleted partitions, as handlers use it (KIP-599).

A handler takes the partitions of each change before it makes the records. Refused changes are
THROTTLING_QUOTA_EXCEEDED, without a message, and the answer names the time to wait.
"""

from typing import Final

from kraft_wire.controller.controller import Controller, ControllerContext, TopicChangeBudget
from kraft_wire.controller.refusal import Refusal
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["TopicChanges", "topic_changes"]


class TopicChanges:
    """The changes of one request, each of which may be refused."""

    __slots__ = ("_budget",)

    def __init__(self, budget: TopicChangeBudget | None) -> None:
        self._budget = budget

    def take(self, partitions: int) -> None:
        """Take the partitions of one change. Errors: Refusal with THROTTLING_QUOTA_EXCEEDED."""
        assert partitions > 0, partitions
        if self._budget is not None and not self._budget.admits(partitions):
            raise Refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)

    @property
    def throttle_ms(self) -> int:
        """The time for the answer."""
        return 0 if self._budget is None else self._budget.throttle_ms


_UNLIMITED: Final = TopicChanges(None)


def topic_changes(
    controller: Controller, context: ControllerContext, *, strict_from: int
) -> TopicChanges:
    """Return the changes that a request may make."""
    quota = controller.topic_change_quota
    if quota is None:
        return _UNLIMITED
    return TopicChanges(quota.budget(context, strict_from))
