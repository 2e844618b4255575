"""Replays records of security: access-control entries, SCRAM credentials, delegation tokens.

KIP-11, KIP-554, KIP-48 and KIP-900. Called through the table in `replay.py`. The image carries them
for snapshots, describing, authorization and logins; nothing is enforced here.
"""

from typing import TYPE_CHECKING

from kraft_wire.metadata.image import AclImage, DelegationTokenImage, ScramImage
from kraft_wire.metadata.image_draft import ImageDraft, MetadataFault

if TYPE_CHECKING:
    from kraft_wire.wire.generated.access_control_entry_record import AccessControlEntryRecord
    from kraft_wire.wire.generated.delegation_token_record import DelegationTokenRecord
    from kraft_wire.wire.generated.remove_access_control_entry_record import (
        RemoveAccessControlEntryRecord,
    )
    from kraft_wire.wire.generated.remove_delegation_token_record import RemoveDelegationTokenRecord
    from kraft_wire.wire.generated.remove_user_scram_credential_record import (
        RemoveUserScramCredentialRecord,
    )
    from kraft_wire.wire.generated.user_scram_credential_record import UserScramCredentialRecord

__all__ = [
    "add_acl",
    "remove_acl",
    "remove_delegation_token",
    "remove_scram_credential",
    "set_delegation_token",
    "set_scram_credential",
]


def add_acl(draft: ImageDraft, record: "AccessControlEntryRecord") -> None:
    """An access-control entry."""
    assert record.RECORD_TYPE == 18, record
    draft.acls.put(
        record.id,
        AclImage(
            resource_type=record.resource_type,
            resource_name=record.resource_name,
            pattern_type=record.pattern_type,
            principal=record.principal,
            host=record.host,
            operation=record.operation,
            permission_type=record.permission_type,
        ),
    )


def remove_acl(draft: ImageDraft, record: "RemoveAccessControlEntryRecord") -> None:
    """The removal of an existing access-control entry."""
    assert record.RECORD_TYPE == 19, record
    if not draft.acls.drop(record.id):
        raise MetadataFault(f"unknown access-control entry {record.id.hex()}")


def set_scram_credential(draft: ImageDraft, record: "UserScramCredentialRecord") -> None:
    """A user's credential for one mechanism."""
    assert record.RECORD_TYPE == 11, record
    draft.scram.put(
        (record.name, record.mechanism),
        ScramImage(
            salt=bytes(record.salt),
            stored_key=bytes(record.stored_key),
            server_key=bytes(record.server_key),
            iterations=record.iterations,
        ),
    )


def remove_scram_credential(draft: ImageDraft, record: "RemoveUserScramCredentialRecord") -> None:
    """The removal of an existing credential."""
    assert record.RECORD_TYPE == 22, record
    if not draft.scram.drop((record.name, record.mechanism)):
        raise MetadataFault(f"user {record.name} has no credential {record.mechanism}")


def set_delegation_token(draft: ImageDraft, record: "DelegationTokenRecord") -> None:
    """A new or renewed delegation token."""
    assert record.RECORD_TYPE == 10, record
    draft.delegation_tokens.put(
        record.token_id,
        DelegationTokenImage(
            owner=record.owner,
            requester=record.requester,
            renewers=tuple(record.renewers),
            issue_timestamp=record.issue_timestamp,
            max_timestamp=record.max_timestamp,
            expiration_timestamp=record.expiration_timestamp,
        ),
    )


def remove_delegation_token(draft: ImageDraft, record: "RemoveDelegationTokenRecord") -> None:
    """The removal of a delegation token, whether or not it exists."""
    assert record.RECORD_TYPE == 26, record
    draft.delegation_tokens.drop(record.token_id)
