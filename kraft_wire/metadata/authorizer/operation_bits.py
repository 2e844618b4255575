"""Operations as bits: those that an entry denies or allows, and those that a request needs.

All entries that match a request are joined by OR: the low half of the number has the denied
operations, the high half the allowed ones. Kafka's codes are the numbers of the bits.
"""

from collections.abc import Mapping
from typing import Final

from kraft_wire.apis.rights import AclOperation, ResourceType

__all__ = [
    "ALLOW",
    "OPERATIONS_OF",
    "allowing",
    "denying",
    "entry_bit",
    "exactly_allowing",
    "matched",
]

ALLOW: Final = 3
"""The code of ALLOW; any other permission denies, as in Kafka."""
_ALL: Final = 2
_HALF: Final = 32

_IMPLYING: Final[Mapping[AclOperation, tuple[AclOperation, ...]]] = {
    AclOperation.DESCRIBE: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}
"""By operation: operations that, if allowed, allow it too; a denial implies nothing."""

denying: Final[Mapping[AclOperation, int]] = {each: 1 << each | 1 << _ALL for each in AclOperation}
"""By operation: the bits of entries that deny it."""

exactly_allowing: Final[Mapping[AclOperation, int]] = {
    each: bits << _HALF for each, bits in denying.items()
}
"""By operation: the bits of entries that allow it by name."""

allowing: Final[Mapping[AclOperation, int]] = {
    each: bits | sum(1 << _HALF + other for other in _IMPLYING.get(each, ()))
    for each, bits in exactly_allowing.items()
}
"""By operation: the bits of entries that allow it, also by implying it."""

OPERATIONS_OF: Final[Mapping[ResourceType, tuple[AclOperation, ...]]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        AclOperation.WRITE,
        AclOperation.DESCRIBE,
        AclOperation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""The valid operations for a type of resource, as `AclEntry.supportedOperations`."""


def entry_bit(operation: int, permission: int) -> int:
    """Return the one bit of an entry; ALL has a separate bit, code 2."""
    assert 0 <= operation < 128, operation
    known = operation if operation < _HALF else 0  # operations of a later release allow nothing
    bit = 1 << (known + _HALF if permission == ALLOW else known)
    assert bit.bit_count() == 1, bit
    return bit


def matched(bits: int) -> str:
    """Return the operation of the first entry among bits, as Kafka names it."""
    assert bits > 0, bits
    assert bits < 1 << 2 * _HALF, bits
    code = ((bits & -bits).bit_length() - 1) % _HALF
    return "ALL" if code == _ALL else AclOperation(code).name
