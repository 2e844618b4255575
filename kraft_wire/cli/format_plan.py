"""What `kraft-wire format` will do: its arguments checked, as values, before a file is touched.

The rules are those of Apache Kafka's StorageTool (KIP-631, KIP-853, KIP-1022); a refusal is a
`FormatRefused` whose text is the line that the user sees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kraft_wire.controller.features import (
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    RELEASE_LEVELS,
    SUPPORTED_FEATURES,
    metadata_version_of_release,
)
from kraft_wire.model import Uuid, uuid_from_text
from kraft_wire.node.checkpoint_files import FormattedVoter

__all__ = ["FormatRefused", "QuorumKind", "feature_levels", "parse_voters", "quorum_kind"]

_PORT_MAX = 65_535
_LEVEL_DIGITS_MAX = 5


class FormatRefused(Exception):
    """Why nothing was formatted."""


@dataclass(frozen=True, slots=True)
class QuorumKind:
    """How the directory's quorum is known."""

    kraft_version: int
    """1 where the voters stand in the log, 0 where they stand in the configuration."""
    writes_voters: bool
    """Whether the (0, 0) checkpoint is written."""


def quorum_kind(*, static_voters: bool, standalone: bool, joins: bool, initial: bool) -> QuorumKind:
    """Decide between a static quorum, a dynamic one that begins here, and joining one later."""
    if (standalone, joins, initial).count(True) > 1:
        raise FormatRefused(
            "only one of --standalone, --no-initial-controllers and --initial-controllers "
            "can be given"
        )
    if static_voters and (standalone or initial):
        raise FormatRefused(
            "controller.quorum.voters is set, which makes the quorum static: remove it (and set "
            "controller.quorum.bootstrap.servers) to use --standalone or --initial-controllers"
        )
    if static_voters:
        return QuorumKind(kraft_version=0, writes_voters=False)
    return QuorumKind(kraft_version=1, writes_voters=standalone or initial)


def feature_levels(
    release: str | None, features: Sequence[str], kind: QuorumKind
) -> dict[str, int]:
    """Return the levels to finalise: the release's, with the given ones put over them.

    Only levels that this node can live up to are accepted.
    """
    levels = {METADATA_VERSION: _release_level(release)}
    for text in features:
        name, level = _feature(text)
        if name == METADATA_VERSION and release is not None:
            raise FormatRefused(
                "use --release-version instead of --feature metadata.version=N, not both"
            )
        if name == KRAFT_VERSION and level != kind.kraft_version:
            what = "dynamic" if kind.kraft_version else "static"
            raise FormatRefused(
                f"kraft.version is {kind.kraft_version} for a {what} quorum, not {level}"
            )
        levels[name] = level
    levels.pop(KRAFT_VERSION, None)
    assert METADATA_VERSION in levels
    return levels


def parse_voters(text: str) -> list[FormattedVoter]:
    """Read `id@host:port:directoryId,…`."""
    voters = [_voter(part.strip()) for part in text.split(",")]
    ids = [voter.node_id for voter in voters]
    if len(set(ids)) != len(ids):
        raise FormatRefused(f"--initial-controllers names a controller twice: {text}")
    return voters


def own_directory(voters: Sequence[FormattedVoter], node_id: int) -> Uuid | None:
    """Return the directory id that the voters' list gives to a node."""
    return next((voter.directory_id for voter in voters if voter.node_id == node_id), None)


def _release_level(release: str | None) -> int:
    if release is None:
        return LATEST_METADATA_VERSION
    level = metadata_version_of_release(release)
    if level is None:
        known = ", ".join(RELEASE_LEVELS)
        raise FormatRefused(f"unknown release {release!r}; known are {known}")
    return level


def _feature(text: str) -> tuple[str, int]:
    name, equals, digits = (part.strip() for part in text.partition("="))
    if not equals or not digits.isdecimal() or len(digits) > _LEVEL_DIGITS_MAX:
        raise FormatRefused(f"--feature {text} is not of the form feature=level")
    level, supported = int(digits), SUPPORTED_FEATURES.get(name)
    if supported is None and level:
        known = _ranges(SUPPORTED_FEATURES)
        raise FormatRefused(f"feature {name} is not supported by this node; supported are {known}")
    if supported is not None and not supported.min_level <= level <= supported.max_level:
        raise FormatRefused(
            f"feature {name} has the levels {supported.min_level} to {supported.max_level} here, "
            f"not {level}"
        )
    return name, level


def _ranges(features: Mapping[str, tuple[int, int]]) -> str:
    return ", ".join(f"{name} {low}-{high}" for name, (low, high) in features.items())


def _voter(text: str) -> FormattedVoter:
    node, at, address = text.partition("@")
    host_and_port, _, directory = address.rpartition(":")
    host, _, port = host_and_port.rpartition(":")
    is_number = node.isdecimal() and port.isdecimal()
    if not at or not host or not is_number or int(port) > _PORT_MAX:
        raise FormatRefused(f"{text!r} is not of the form id@host:port:directoryId")
    try:
        directory_id = uuid_from_text(directory)
    except ValueError as error:
        raise FormatRefused(f"{text!r}: {error}") from error
    return FormattedVoter(int(node), host.strip("[]"), int(port), directory_id)
