"""Replay of metadata records: one table, record type -> change of the draft image.

KIP-631 and its successors define the records; the numbers are the schemas' `apiKey`. Replaying is
strict: a record that contradicts the log before it is a MetadataFault, never a guess, because every
later record builds on the result. The families are in `replay_nodes`, `replay_topics`,
`replay_settings` and `replay_security`; transactions (23 to 25) and snapshots in `loader`.
"""

from collections.abc import Callable, Mapping
from typing import Final, Never, cast

from kraft_wire.metadata.image_draft import ImageDraft, MetadataFault
from kraft_wire.metadata.replay_nodes import (
    change_broker_registration,
    fence_broker,
    register_broker,
    register_controller,
    unfence_broker,
    unregister_broker,
)
from kraft_wire.metadata.replay_security import (
    add_acl,
    remove_acl,
    remove_delegation_token,
    remove_scram_credential,
    set_delegation_token,
    set_scram_credential,
)
from kraft_wire.metadata.replay_settings import (
    no_op,
    set_client_quota,
    set_config,
    set_feature_level,
    set_producer_ids,
    set_zk_migration_state,
)
from kraft_wire.metadata.replay_topics import (
    add_partition,
    add_topic,
    change_partition,
    clear_elr,
    remove_topic,
)
from kraft_wire.wire.message import Message

__all__ = ["REPLAYERS", "replay"]


def replay(draft: ImageDraft, record: Message) -> None:
    """Apply one record; MetadataFault when it contradicts what came before."""
    assert record.RECORD_TYPE >= 0, f"{record.NAME} is not a metadata record"
    replayer = REPLAYERS.get(record.RECORD_TYPE)
    if replayer is None:
        raise MetadataFault(f"a {record.NAME} is not allowed here")
    cast("Callable[[ImageDraft, Message], object]", replayer)(draft, record)


REPLAYERS: Final[Mapping[int, Callable[[ImageDraft, Never], object]]] = {
    0: register_broker,
    1: unregister_broker,
    2: add_topic,
    3: add_partition,
    4: set_config,
    5: change_partition,
    7: fence_broker,
    8: unfence_broker,
    9: remove_topic,
    10: set_delegation_token,
    11: set_scram_credential,
    12: set_feature_level,
    14: set_client_quota,
    15: set_producer_ids,
    17: change_broker_registration,
    18: add_acl,
    19: remove_acl,
    20: no_op,
    21: set_zk_migration_state,
    22: remove_scram_credential,
    26: remove_delegation_token,
    27: register_controller,
    28: clear_elr,
}
"""Every record except the three of transactions; other types are a fault."""
