"""Which APIs the broker serves: key, versions, and the module that handles them.

Handlers are imported when their API is first used, which keeps the start short. `advertised` is
what ApiVersions tells clients: Produce is shown from version 0 although 0 to 2 are refused, because
librdkafka up to 2.0 drops compression otherwise (KAFKA-18659). Controller APIs that a client may
send to a broker are in `FORWARDED`: the router hands them to the controller.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

from kraft_wire.broker.context import RequestContext, Withheld
from kraft_wire.frozen import frozen
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["API_TABLE", "FORWARDED", "ApiEntry", "Handle", "advertised", "handler"]

Handle: TypeAlias = "Callable[[Broker, RequestContext, Message], Message | Withheld]"


@frozen
class ApiEntry:
    """One served API: inclusive versions, and the module under `broker/handlers`."""

    api_key: int
    min_version: int
    max_version: int
    module: str
    advertised_min_version: int = -1
    """Lowest version shown by ApiVersions where it is below the served one."""

    @property
    def shown_min_version(self) -> int:
        """The lower end of the range in ApiVersions."""
        shown = self.advertised_min_version
        return self.min_version if shown < 0 else shown


_ENTRIES: Final = (
    ApiEntry(0, 3, 13, "produce", advertised_min_version=0),
    ApiEntry(1, 4, 18, "fetch"),
    ApiEntry(2, 1, 11, "list_offsets"),
    ApiEntry(3, 0, 13, "metadata"),
    ApiEntry(8, 2, 10, "offset_commit"),
    ApiEntry(9, 1, 10, "offset_fetch"),
    ApiEntry(10, 0, 6, "find_coordinator"),
    ApiEntry(11, 0, 9, "join_group"),
    ApiEntry(12, 0, 4, "heartbeat"),
    ApiEntry(13, 0, 5, "leave_group"),
    ApiEntry(14, 0, 5, "sync_group"),
    ApiEntry(15, 0, 6, "describe_groups"),
    ApiEntry(16, 0, 5, "list_groups"),
    ApiEntry(18, 0, 4, "api_versions"),
    ApiEntry(21, 0, 2, "delete_records"),
    ApiEntry(22, 0, 5, "init_producer_id"),
    ApiEntry(23, 2, 4, "offset_for_leader_epoch"),
    ApiEntry(29, 1, 3, "describe_acls"),
    ApiEntry(32, 1, 4, "describe_configs"),
    ApiEntry(35, 1, 5, "describe_log_dirs"),
    ApiEntry(42, 0, 2, "delete_groups"),
    ApiEntry(47, 0, 0, "offset_delete"),
    ApiEntry(48, 0, 1, "describe_client_quotas"),
    ApiEntry(50, 0, 0, "describe_user_scram_credentials"),
    ApiEntry(60, 0, 2, "describe_cluster"),
    ApiEntry(61, 0, 0, "describe_producers"),
    ApiEntry(74, 0, 1, "list_config_resources"),
    ApiEntry(75, 0, 0, "describe_topic_partitions"),
)

API_TABLE: Final[dict[int, ApiEntry]] = {entry.api_key: entry for entry in _ENTRIES}

FORWARDED: Final[dict[int, tuple[int, int]]] = {
    19: (2, 7),  # CreateTopics
    20: (1, 6),  # DeleteTopics
    30: (1, 3),  # CreateAcls
    31: (1, 3),  # DeleteAcls
    33: (0, 2),  # AlterConfigs
    37: (0, 3),  # CreatePartitions
    43: (0, 2),  # ElectLeaders
    44: (0, 1),  # IncrementalAlterConfigs
    45: (0, 1),  # AlterPartitionReassignments
    46: (0, 0),  # ListPartitionReassignments
    49: (0, 1),  # AlterClientQuotas
    51: (0, 0),  # AlterUserScramCredentials
    55: (0, 2),  # DescribeQuorum
    57: (0, 2),  # UpdateFeatures
    64: (0, 0),  # UnregisterBroker
    80: (0, 1),  # AddRaftVoter
    81: (0, 0),  # RemoveRaftVoter
}
"""Inclusive versions of what clients ask of any broker and the active controller answers."""

_loaded: dict[int, Handle] = {}


def handler(api_key: int) -> Handle:
    """Return the function that serves an API of `API_TABLE`, importing it on first use."""
    found = _loaded.get(api_key)
    if found is None:
        module = import_module(f"kraft_wire.broker.handlers.{API_TABLE[api_key].module}")
        found = module.handle
        assert found is not None, api_key
        _loaded[api_key] = found
    return found


def advertised() -> dict[int, tuple[int, int]]:
    """Return key → inclusive versions as ApiVersions shows them, in key order."""
    shown = {
        entry.api_key: (entry.shown_min_version, entry.max_version) for entry in _ENTRIES
    } | FORWARDED
    return dict(sorted(shown.items()))
