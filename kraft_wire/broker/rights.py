"""The authorizer's decisions that a broker asks for itself, about topics that no request names.

The guards of the node check what a request names before a handler sees it. They cannot check the
partitions of a fetch session, the topics that a regular expression matches, and internal topics.
Without an authorizer a broker has no `Rights`.
"""

from collections.abc import Callable
from typing import Protocol

from kraft_wire.broker.context import RequestContext

__all__ = ["Rights"]


class Rights(Protocol):
    """Rights of the principal of one request, each as a function from a topic to a decision."""

    def fetch_rights(
        self, context: RequestContext, *, is_follower: bool
    ) -> Callable[[str | None], bool]:
        """Return whether a fetch may read a topic; None is a topic that does not exist."""
        ...

    def share_rights(self, context: RequestContext, api_key: int) -> Callable[[str], bool]:
        """Return whether a share group's request may read a topic."""
        ...

    def topic_rights(self, context: RequestContext) -> Callable[[str], bool]:
        """Return whether a topic that a regular expression matches may be described."""
        ...

    def creation_rights(self, context: RequestContext) -> Callable[[str], bool]:
        """Return whether an internal topic of a streams group may be created."""
        ...
