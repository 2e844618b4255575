"""A change of one resource's settings: from the request to its records.

Shared by IncrementalAlterConfigs (KIP-339), the older AlterConfigs (KIP-133), and CreateTopics.
Problems are raised as Refusals; nothing here answers.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from kraft_wire.controller.broker_names import check_broker_name
from kraft_wire.controller.config_rules import check_kind, check_resource, keys_of
from kraft_wire.controller.controller import Controller
from kraft_wire.controller.cordoning import check_cordoned
from kraft_wire.controller.elr_settings import check_min_isr
from kraft_wire.controller.java_map import java_map_order
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.settings.broker import BROKER_KEYS, FIXED_WHILE_RUNNING
from kraft_wire.settings.definition import ConfigKind
from kraft_wire.settings.values import default_text
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = [
    "LOGGER_RESOURCE",
    "ConfigChange",
    "ConfigOperation",
    "changed_records",
    "check_asked",
    "check_keys",
    "incremental_values",
    "replaced_values",
    "without_a_broker",
]

_LOGIN_ENTRY: Final = "sasl.jaas.config"
"""The end of the keys of login entries, with any prefix: listeners read them at the start alone."""

_STRING_BYTES_MAX: Final = 32_767
"""Longest string of the protocol and of a record; an APPEND may exceed it."""
_TOO_LONG: Final = (
    "The configuration value cannot be added because it exceeds the maximum value size "
    f"of {_STRING_BYTES_MAX} bytes."
)


LOGGER_RESOURCE = 8
"""A broker's log levels (KIP-412); they are the broker's own and never in the metadata."""


class ConfigOperation(IntEnum):
    """Operations of IncrementalAlterConfigs on one key."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_OPERATIONS: Final = frozenset(ConfigOperation)


class ConfigChange(NamedTuple):
    """One requested change of one key."""

    name: str
    operation: int
    value: str | None


def check_asked(
    controller: Controller,
    resource_type: int,
    name: str,
    changes: Sequence[ConfigChange],
    *,
    is_direct: bool,
) -> None:
    """Check all but the values: repeated keys, nulls, and the broker that owns the resource.

    Errors, first match wins, all INVALID_REQUEST: duplicate keys, null values, an unknown type of
    resource, foreign or malformed broker id (at a controller alone BROKER_ID_NOT_REGISTERED for one
    that is not a node), unknown operation, a key that our broker reads at its start alone.
    """
    check_keys(changes)
    if not is_direct:
        check_kind(resource_type)
    is_of_one_broker = resource_type == BROKER_RESOURCE and bool(name)
    if is_of_one_broker:
        check_broker_name(controller, name, is_direct=is_direct)
    for change in changes:
        if change.operation not in _OPERATIONS:
            words = f"Unknown operations type {change.operation}"
            raise Refusal(ErrorCode.INVALID_REQUEST, words)
        if is_of_one_broker:
            _check_is_changeable(change)
    assert all(
        change.value is not None or change.operation == ConfigOperation.DELETE for change in changes
    )


def check_keys(changes: Sequence[ConfigChange]) -> None:
    """Refuse keys that are named twice, and null values; both INVALID_REQUEST."""
    names = [change.name for change in changes]
    if len(set(names)) != len(names):
        raise Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [
        change.name
        for change in changes
        if change.value is None and change.operation != ConfigOperation.DELETE
    ]
    if nulls:
        words = f"Null value not supported for : {', '.join(nulls)}"
        raise Refusal(ErrorCode.INVALID_REQUEST, words)


def without_a_broker(changes: Sequence[ConfigChange]) -> list[ConfigChange]:
    """Return changes that came to a controller as it takes them, without a broker's checks.

    Of a key that is named twice the last change counts, and SET to null removes the key.
    """
    last = {change.name: change for change in changes}
    assert len(last) <= len(changes)
    return [
        change._replace(operation=ConfigOperation.DELETE)
        if change.value is None and change.operation == ConfigOperation.SET
        else change
        for change in last.values()
    ]


def incremental_values(
    resource_type: int,
    present: Mapping[str, str],
    changes: Sequence[ConfigChange],
    *,
    is_direct: bool = False,
) -> dict[str, str]:
    """Return a resource's values after a list of operations on its present ones.

    Refusal: INVALID_CONFIG (the setting is not a list).
    """
    values = dict(present)
    for change in changes:
        new = _operated(resource_type, change, values.get(change.name), is_direct=is_direct)
        if new is None:
            values.pop(change.name, None)
        else:
            values[change.name] = new
    assert all(
        change.name in values for change in changes if change.operation == ConfigOperation.SET
    )
    return values


def replaced_values(changes: Sequence[ConfigChange]) -> dict[str, str]:
    """Return a resource's values when a request replaces all of them; null is none."""
    return {change.name: change.value for change in changes if change.value is not None}


def changed_records(
    controller: Controller,
    resource_type: int,
    name: str,
    values: Mapping[str, str],
    asked: Sequence[ConfigChange],
    *,
    is_direct: bool,
) -> list[VersionedRecord]:
    """Check a resource's new values and return their records.

    A broker's value is recorded even if it is unchanged: the broker then reloads the file that the
    value names (KIP-226). `is_direct`: no broker has checked the request. Errors, first match wins:
    INVALID_CONFIG of `elr_settings`, those of `config_rules`, INVALID_CONFIG of `cordoning` (before
    those of `config_rules` if the request is direct), UNKNOWN_TOPIC_OR_PARTITION.
    """
    before = controller.image.config(resource_type, name)
    names = java_map_order(dict.fromkeys(change.name for change in asked))
    changed: list[tuple[str, str | None]] = [
        (key, values.get(key))
        for key in names
        if before.get(key) != values.get(key) or resource_type == BROKER_RESOURCE
    ]
    changed += [(key, None) for key in before if key not in values and key not in names]
    assert len(dict(changed)) == len(changed), changed
    check_min_isr(controller.image, resource_type, name, changed)
    if is_direct:
        check_cordoned(controller.image, resource_type, before, changed, is_direct=True)
    if any(value is not None and _length(value) > _STRING_BYTES_MAX for _, value in changed):
        raise Refusal(ErrorCode.INVALID_CONFIG, _TOO_LONG)
    check_resource(resource_type, name, values, controller.settings)
    if not is_direct:  # in Kafka the broker has made the checks above
        check_cordoned(controller.image, resource_type, before, changed, is_direct=False)
    if resource_type == TOPIC_RESOURCE and controller.image.topic(name) is None:
        words = f"The topic '{name}' does not exist."
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)
    _check_sizes(name, values)
    assert {key for key, _ in changed} <= {*names, *before}
    return [
        VersionedRecord(
            ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)
        )
        for key, value in changed
    ]


def _check_sizes(name: str, values: Mapping[str, str]) -> None:
    """Refuse values that are too long for a record.

    Every string arrived in a request, but an APPEND makes lists longer, and an invalid byte of
    UTF-8 became a character of three bytes.
    """
    for text in values.values():
        if _size_bytes(text) > _STRING_BYTES_MAX:
            raise Refusal(ErrorCode.INVALID_CONFIG, _TOO_LONG)
    for text in (name, *values):
        if _size_bytes(text) > _STRING_BYTES_MAX:
            words = f"A name of more than {_STRING_BYTES_MAX} bytes cannot be recorded: {text}"
            raise Refusal(ErrorCode.INVALID_REQUEST, words)


def _length(text: str) -> int:
    """Return the number of Java's characters, of which some take two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _size_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _operated(
    resource_type: int, change: ConfigChange, present: str | None, *, is_direct: bool
) -> str | None:
    if change.operation == ConfigOperation.DELETE:
        return None
    assert change.value is not None, "check_asked comes first"
    if change.operation == ConfigOperation.SET:
        return change.value
    operation = ConfigOperation(change.operation)
    is_of_broker = resource_type == BROKER_RESOURCE
    key = (BROKER_KEYS if is_of_broker else keys_of(resource_type)).get(change.name)
    if key is None or key.kind is not ConfigKind.LIST:
        words = f"Can't {operation.name} to key {change.name} because its type is not LIST."
        if is_of_broker and not is_direct:  # a broker of 4.3.1 says so first
            verb = operation.name.lower()
            words = f"Config value {verb} is not allowed for config key: {change.name}"
            if key is None:
                words = f"Unknown config name: {change.name}"
        raise Refusal(ErrorCode.INVALID_CONFIG, words)
    assert operation in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT), operation
    members = [each for each in _split(default_text(key) if present is None else present) if each]
    asked, known = _split(change.value), Counter(members)
    if operation is ConfigOperation.APPEND:
        new = [each for each in dict.fromkeys(asked) if each not in known]
        return ",".join([*members, *new])
    left = known - Counter(asked)
    kept: list[str] = []
    for each in reversed(members):  # the first of two equal members is removed
        if left[each]:
            left[each] -= 1
            kept.append(each)
    return ",".join(reversed(kept))


def _split(text: str | None) -> list[str]:
    """Return the members of a list as Java splits it: blanks stay, empty ones at the end go."""
    if not text:
        return [] if text is None else [""]
    members = text.split(",")
    while members and not members[-1]:
        members.pop()
    return members


def _check_is_changeable(change: ConfigChange) -> None:
    """Refuse keys that would not be applied; those that Apache's broker recorded may be removed."""
    is_fixed = change.name in FIXED_WHILE_RUNNING or change.name.endswith(_LOGIN_ENTRY)
    if is_fixed and change.operation != ConfigOperation.DELETE:
        words = f"{change.name} cannot be changed while the broker runs: change its file, restart"
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
