"""Checks of one request by the authorizer: whether its principal has the rights that it needs.

The table of `apis.rows` has the rights; a guard names the steps of it that a request takes, and the
resources. If one of several rights is enough, only the denial of the last one writes an audit line,
as in Kafka.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from kraft_wire.apis.rights import AclOperation, Need, ResourceType, Right
from kraft_wire.broker.context import RequestContext, Silence
from kraft_wire.frozen import slotted
from kraft_wire.metadata.acl_rules import CLUSTER_NAME
from kraft_wire.metadata.authorizer.standard_authorizer import StandardAuthorizer
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.node.authorization.audit import Audit, Who
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.message import Message

__all__ = ["NO_OPERATIONS", "Asked", "Asker", "Finish", "Passed", "Verdict"]

NO_OPERATIONS: Final = -(2**31)
"""`authorized_operations` of an answer if the request does not include them (KIP-430)."""


class Asker:
    """Checks rights of one request's principal."""

    __slots__ = ("_audit", "_authorizer", "_now_ms", "_who")

    def __init__(self, authorizer: StandardAuthorizer, audit: Audit, who: Who, now_ms: int) -> None:
        self._authorizer = authorizer
        self._audit = audit
        self._who = who
        self._now_ms = now_ms

    def meets(self, need: Need, name: str = "", *, is_silent: bool = False) -> bool:
        """Return whether the principal has one of a need's rights, on a resource or the cluster.

        With `is_silent` a denial writes no audit line.
        """
        return self._any(need, name, 1, is_silent)

    def allowed(
        self, need: Need, names: Iterable[str], *, is_silent: bool = False
    ) -> Mapping[str, bool]:
        """Return for each name whether a need is met; each name is checked once."""
        counts = Counter(names)
        return {name: self._any(need, name, count, is_silent) for name, count in counts.items()}

    def meets_for_any(self, right: Right) -> bool:
        """Return whether the principal has the right on some resource of its type (KIP-679)."""
        who = self._who
        return self._authorizer.authorize_any(
            who.principal, who.host, right.operation, right.resource
        )

    def has(self, right: Right, name: str = "", *, count: int = 1, is_silent: bool = False) -> bool:
        """Return whether the principal has one right."""
        who = self._who
        resource = CLUSTER_NAME if right.resource is ResourceType.CLUSTER else name
        is_allowed = self._authorizer.authorize(
            who.principal, who.host, right.operation, right.resource, resource
        )
        if is_allowed or not is_silent:
            self._audit.tell(who, right, resource, count, self._now_ms, is_allowed=is_allowed)
        return is_allowed

    def operations(self, resource: ResourceType, name: str = CLUSTER_NAME) -> int:
        """Return the allowed operations, a bit for each code; without audit lines."""
        who = self._who
        return self._authorizer.allowed_operations(who.principal, who.host, resource, name)

    def describes_cluster(self) -> bool:
        """Return whether the cluster may be described, for its operations in an answer."""
        return self.has(Right(AclOperation.DESCRIBE, ResourceType.CLUSTER))

    def _any(self, need: Need, name: str, count: int, is_silent: bool) -> bool:
        last = need.rights[-1]
        return any(
            self.has(right, name, count=count, is_silent=is_silent or right is not last)
            for right in need.rights
        )


@slotted
class Asked:
    """One request, as a guard gets it."""

    asker: Asker
    context: RequestContext
    request: Message
    needs: tuple[Need, ...]
    """The needs of the table, in its order."""
    image: MetadataImage
    settings: NodeSettings


Finish: TypeAlias = Callable[[Message | Silence], Message | Silence]


class Passed(NamedTuple):
    """The part of a request that may be served."""

    request: Message
    finish: Finish | None = None
    """Makes the answer to the whole request from the answer to this part; None: it is the same."""


Verdict: TypeAlias = Message | Silence | Passed
"""An answer that refuses the whole request, or the part that may be served."""
