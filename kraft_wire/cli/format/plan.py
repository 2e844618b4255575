"""The plan of `kraft-wire format`: its arguments, checked before a file is changed.

The rules are those of Apache Kafka's StorageTool (KIP-631, KIP-853, KIP-1022); a refusal is a
`FormatRefused` whose text is the line that the user sees.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kraft_wire.metadata.features import (
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    RELEASE_LEVELS,
    SUPPORTED_FEATURES,
    default_levels,
    metadata_version_of_release,
    missing_dependency,
)
from kraft_wire.model import Uuid, uuid_from_text
from kraft_wire.node.config.sources import is_number_up_to
from kraft_wire.node.disks.checkpoint_files import FormattedVoter

__all__ = ["FormatRefused", "QuorumKind", "feature_levels", "parse_voters", "quorum_kind"]

_PORT_MAX = 65_535
_NODE_ID_MAX = (1 << 31) - 1
_SHORT_DIGITS_MAX = 5
_SHORTS = range(-(1 << 15), 1 << 15)
_UNSTABLE = {LATEST_METADATA_VERSION + 1: "4.4-IV0"}
"""metadata.versions that release 4.3.1 has but does not finalise."""


class FormatRefused(Exception):
    """Why nothing was formatted."""


@dataclass(frozen=True, slots=True)
class QuorumKind:
    """The kind of the directory's quorum."""

    kraft_version: int
    """1 where the voters are in the log, 0 where they are in the configuration."""
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
    """Return the levels to finalise: the release's, with the given ones put over them."""
    given = dict(_feature(text) for text in features)
    levels = default_levels(given.get(METADATA_VERSION, _release_level(release)))
    for text in features:
        name, level = _feature(text)
        if name == METADATA_VERSION and release is not None:
            raise FormatRefused(
                "Use --release-version instead of --feature metadata.version=X to avoid ambiguity."
            )
        _check_level(name, level, kind)
        levels[name] = level
    levels.pop(KRAFT_VERSION, None)
    for name, level in levels.items():
        missing = missing_dependency(name, level, levels)
        if missing is not None:
            raise FormatRefused(missing)
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
        raise FormatRefused(
            f"Unknown metadata.version {release!r}. Supported metadata.version are: {known}"
        )
    return level


def _feature(text: str) -> tuple[str, int]:
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals:
        raise FormatRefused(f"Can't parse feature=level string {text}: equals sign not found.")
    digits = level.removeprefix("-")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _SHORT_DIGITS_MAX
    if not is_number or int(level) not in _SHORTS:
        raise FormatRefused(
            f"Can't parse feature=level string {text}: unable to parse {level} as a short."
        )
    return name, int(level)


def _check_level(name: str, level: int, kind: QuorumKind) -> None:
    """Refuse levels that this node does not support, in the words of Apache's tool."""
    if name == METADATA_VERSION:
        _check_metadata_version(level)
    elif name == KRAFT_VERSION and level != kind.kraft_version:
        what, remedy = (
            ("dynamic", "omit --feature kraft.version")
            if kind.kraft_version
            else (
                "static",
                "for a dynamic one remove controller.quorum.voters and give one of --standalone, "
                "--initial-controllers and --no-initial-controllers",
            )
        )
        raise FormatRefused(
            f"kraft.version is {kind.kraft_version} for a {what} quorum, not {level}: {remedy}"
        )
    elif name not in SUPPORTED_FEATURES:
        known = ", ".join(sorted(SUPPORTED_FEATURES))
        raise FormatRefused(f"Unsupported feature: {name}. Supported features are: {known}")
    elif not SUPPORTED_FEATURES[name].min_level <= level <= SUPPORTED_FEATURES[name].max_level:
        raise FormatRefused(f"No feature:{name} with feature level {level}")


def _check_metadata_version(level: int) -> None:
    if level in _UNSTABLE:
        raise FormatRefused(f"metadata.version {_UNSTABLE[level]} is not yet stable.")
    low, high = SUPPORTED_FEATURES[METADATA_VERSION]
    if not low <= level <= high:
        raise FormatRefused(
            f"No MetadataVersion with feature level {level}. "
            f"Valid feature levels are from {low} to {high}."
        )


def _voter(text: str) -> FormattedVoter:
    node, at, address = text.partition("@")
    host_and_port, _, directory = address.rpartition(":")
    host, _, port = host_and_port.rpartition(":")
    is_right = is_number_up_to(node, _NODE_ID_MAX) and is_number_up_to(port, _PORT_MAX)
    if not at or not host or not is_right:
        raise FormatRefused(f"{text!r} is not of the form id@host:port:directoryId")
    try:
        directory_id = uuid_from_text(directory)
    except ValueError as error:
        raise FormatRefused(f"{text!r}: {error}") from error
    return FormattedVoter(int(node), host.strip("[]"), int(port), directory_id)
