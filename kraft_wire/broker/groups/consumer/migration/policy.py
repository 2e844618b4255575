"""`group.consumer.migration.policy`: how a group with members may change its protocol (KIP-848).

Kafka compares the names without regard to case.
"""

from enum import Enum

from kraft_wire.broker.settings import BrokerSettings

__all__ = ["MigrationPolicy", "migration_policy"]


class MigrationPolicy(Enum):
    """A policy by its name in the settings."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        """Whether a classic group with members may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        """Whether a consumer group may become a classic one when only classic members are left."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


def migration_policy(settings: BrokerSettings) -> MigrationPolicy:
    """Return the broker's policy."""
    return MigrationPolicy(settings.group_consumer_migration_policy.lower())
