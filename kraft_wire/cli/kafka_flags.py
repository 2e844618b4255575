"""Command lines as people type them for Kafka's scripts, in the form of our verbs.

`topics --describe --topic t` is `topics describe t`. An action may be an option, a topic may be
`--topic`; options that have another name here are replaced.
"""

from collections.abc import Sequence
from typing import Final

__all__ = ["translated"]

_ACTIONS: Final = {
    "topics": ("--list", "--create", "--describe", "--delete", "--alter"),
    "groups": ("--list", "--describe", "--reset-offsets", "--delete", "--delete-offsets"),
    "configs": ("--describe", "--alter"),
    "acls": ("--list", "--add", "--remove"),
}
_RENAMED: Final = {"--under-replicated-partitions": "--under-replicated"}
_TOPIC: Final = "--topic"


def translated(verb: str, arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a verb without the forms that only Kafka's scripts have."""
    actions = _ACTIONS.get(verb, ())
    rest = [_RENAMED.get(each, each) for each in arguments]
    action = next((each for each in rest if each in actions), None)
    if action is not None and rest[0].startswith("-"):
        rest.remove(action)
        rest.insert(0, action.removeprefix("--"))
        if verb == "topics" and action == "--list":
            rest = _with_internal(rest)
    return _with_topics_last(rest) if verb == "topics" else rest


def _with_internal(rest: Sequence[str]) -> list[str]:
    """Kafka's list shows internal topics unless they are excluded."""
    if "--exclude-internal" in rest:
        return [each for each in rest if each != "--exclude-internal"]
    return [*rest, "--internal"]


def _with_topics_last(rest: Sequence[str]) -> list[str]:
    """Turn `--topic NAME` into an argument."""
    kept: list[str] = []
    topics: list[str] = []
    pending = iter(rest)
    for each in pending:
        name, equals, value = each.partition("=")
        if name != _TOPIC:
            kept.append(each)
        elif equals:
            topics.append(value)
        else:
            topics += [text for text in (next(pending, None),) if text is not None]
    return [*kept, *topics]
