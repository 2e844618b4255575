"""What the members of a group subscribe to: by name, and by resolved regular expressions."""

from collections.abc import Iterable, Mapping

from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.broker.groups.consumer.results import ResolvedRegex
from kraft_wire.broker.groups.java_collections import java_hash_set
from kraft_wire.frozen import frozen

__all__ = ["Subscriptions", "names_of", "resolved_regexes", "subscriber_count", "subscriptions"]


@frozen
class Subscriptions:
    """The topics of a group, whether they exist or not."""

    names: tuple[str, ...]
    is_homogeneous: bool
    """Whether all members subscribe to the same topics in the same way."""


def subscriptions(
    members: Iterable[ConsumerMember], regexes: Mapping[str, ResolvedRegex]
) -> Subscriptions:
    """Return what members subscribe to, with the topics of the group's regular expressions."""
    by_name: dict[str, int] = {}
    regex_users: dict[str, int] = {}
    member_count = 0
    for member in members:
        member_count += 1
        for name in member.subscribed_topic_names:
            by_name[name] = by_name.get(name, 0) + 1
        if member.subscribed_topic_regex:
            regex = member.subscribed_topic_regex
            regex_users[regex] = regex_users.get(regex, 0) + 1
    by_regex: dict[str, int] = {}
    for resolved in regexes.values():
        for name in resolved.topics:
            by_regex[name] = by_regex.get(name, 0) + 1
    names = tuple(dict.fromkeys((*by_name, *by_regex)))
    if not regex_users:
        is_homogeneous = all(by_name.get(name, 0) == member_count for name in names)
    else:
        is_homogeneous = member_count in regex_users.values() and all(
            by_regex.get(name, 0) == 1 and name not in by_name for name in names
        )
    return Subscriptions(names, is_homogeneous)


def resolved_regexes(group: ConsumerGroup, without: Iterable[str]) -> dict[str, ResolvedRegex]:
    """Return the group's resolved regular expressions but some."""
    left = dict(group.regexes.items())
    for regex in without:
        left.pop(regex, None)
    return left


def subscriber_count(group: ConsumerGroup, regex: str) -> int:
    """Return how many members use a regular expression."""
    return group.regex_users.get(regex) or 0


def names_of(member: ConsumerMember, regexes: Mapping[str, ResolvedRegex]) -> tuple[str, ...]:
    """Return the topics of a member in the order in which Java's sets list them."""
    own = _hash_ordered(member.subscribed_topic_names)
    resolved = regexes.get(member.subscribed_topic_regex or "")
    if resolved is None or not resolved.topics:
        return own
    matched = _hash_ordered(resolved.topics)
    if not own:
        return matched
    large, small = (own, matched) if len(own) > len(matched) else (matched, own)
    return (*large, *(name for name in small if name not in large))


def _hash_ordered(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(java_hash_set(names, max(int(len(names) / 0.75) + 1, 16)))
