"""Audit lines of allowed and denied operations, in the words of Kafka's `kafka.authorizer.logger`.

    Principal = User:bob is Denied operation = READ from host = 10.1.2.3 on resource =
    Topic:LITERAL:t for request = Fetch with resourceRefCount = 1 based on rule DefaultDeny

A denial is an event of level INFO, a grant of level DEBUG. Lines are limited to ten a second for
each address and kind; a further line has the number of those that were left out.
"""

from typing import Final, NamedTuple

from kraft_wire.apis.rights import Right
from kraft_wire.broker.log_line_limiter import LogLineLimiter
from kraft_wire.metadata.authorizer.standard_authorizer import StandardAuthorizer
from kraft_wire.model import Principal, ReportEvent
from kraft_wire.node.event_log import Line

__all__ = ["Audit", "Who"]

_GRANTED, _DENIED = "authorization_granted", "authorization_denied"
_SUPPRESSED: Final = {
    _GRANTED: "authorization_granted_suppressed",
    _DENIED: "authorization_denied_suppressed",
}
_RESOURCE_WORDS: Final = {
    "TOPIC": "Topic",
    "GROUP": "Group",
    "CLUSTER": "Cluster",
    "TRANSACTIONAL_ID": "TransactionalId",
    "DELEGATION_TOKEN": "DelegationToken",
    "USER": "User",
}


class Who(NamedTuple):
    """The principal, address and request of a check."""

    principal: Principal
    host: str
    api_name: str


class Audit:
    """Writes the lines of one node."""

    def __init__(self, authorizer: StandardAuthorizer, report: ReportEvent) -> None:
        self._authorizer = authorizer
        self._report = report
        self._limit = LogLineLimiter(self._suppressed)

    def tell(
        self, who: Who, right: Right, name: str, count: int, now_ms: int, *, is_allowed: bool
    ) -> None:
        """Write the line of one decision; `count` is the request's number of references to it."""
        event = _GRANTED if is_allowed else _DENIED
        if not self._limit.may_write(who.host, event, now_ms):
            return
        rule = self._authorizer.rule(who.principal, who.host, right.operation, right.resource, name)
        resource = _RESOURCE_WORDS[right.resource.name]
        self._report(
            event,
            client=who.host,
            message=Line(
                f"Principal = {who.principal} is {'Allowed' if is_allowed else 'Denied'} "
                f"operation = {right.operation.name} from host = {who.host} "
                f"on resource = {resource}:LITERAL:{name} for request = {who.api_name} "
                f"with resourceRefCount = {count} based on rule {rule}"
            ),
        )

    def tick(self, now_ms: int) -> None:
        """Report the number of lines that the last second lacks."""
        self._limit.tick(now_ms)

    def _suppressed(self, host: str, event: str, count: int) -> None:
        self._report(_SUPPRESSED[event], client=host, count=count)
