"""The guards that a node's configuration wants; a node without an authorizer imports none."""

from typing import TYPE_CHECKING

from kraft_wire.model import ReportEvent
from kraft_wire.node.config.node_config import NodeConfig

if TYPE_CHECKING:
    from kraft_wire.node.authorization.guards import Guards

__all__ = ["guards_of"]


def guards_of(config: NodeConfig, report: ReportEvent) -> "Guards | None":
    """Return the guards, None without an authorizer."""
    if config.authorizer is None:
        return None
    from kraft_wire.metadata.authorizer.standard_authorizer import StandardAuthorizer
    from kraft_wire.node.authorization.guards import Guards

    users, allows = config.authorizer
    return Guards(StandardAuthorizer(users, allows_without_acl=allows), report)
