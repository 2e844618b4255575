"""The log directory of a new replica in the metadata (KIP-858).

Not here: reserved ids (`metadata.directory_ids`), moves of replicas (`assign_replicas_to_dirs`),
failures (`broker_changes`).
"""

from kraft_wire.metadata.directory_ids import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from kraft_wire.metadata.image import BrokerImage
from kraft_wire.model import Uuid

__all__ = ["default_directory"]


def default_directory(broker: BrokerImage) -> Uuid:
    """Return the log directory of a broker's new replica, as the controller assigns it.

    A single directory is assigned, cordoned or not; the broker chooses among several.
    """
    if not broker.log_dirs:
        return MIGRATING_DIRECTORY
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED_DIRECTORY
