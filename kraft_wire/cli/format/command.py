"""`kraft-wire format`: prepare a node's log directories, as `kafka-storage format` does.

Same arguments, same files; only features that this node supports are finalised. Exit codes: 0
formatted (or nothing to do), 1 a directory is formatted already, 2 could not run.
"""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kraft_wire.cli.format.plan import (
    FormatRefused,
    feature_levels,
    own_directory,
    parse_voters,
    quorum_kind,
)
from kraft_wire.cli.format.scram import parse_scram
from kraft_wire.cli.properties_file import UnreadableFile, read_properties
from kraft_wire.cli.random_source import SystemRandomSource
from kraft_wire.metadata.features import (
    METADATA_VERSION,
    RELEASE_LEVELS,
    SCRAM_FROM,
    bootstrap_records,
)
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import (
    LeaderEpoch,
    Offset,
    OffsetAndEpoch,
    StorageError,
    Uuid,
    random_uuid,
)
from kraft_wire.node.config.node_config import ConfigError, NodeConfig, load_config
from kraft_wire.node.disks.checkpoint_files import (
    FormattedVoter,
    bootstrap_checkpoint_bytes,
    quorum_checkpoint_bytes,
)
from kraft_wire.node.quorum.metadata_opening import BOOTSTRAP_CHECKPOINT
from kraft_wire.settings.topic_names import METADATA_TOPIC
from kraft_wire.storage.directory.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kraft_wire.storage.files import FileSystem, replace_file
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotWriter

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_ALREADY_FORMATTED: Final = 1
_COULD_NOT_RUN: Final = 2
_FORMATTED: Final = OffsetAndEpoch(Offset(0), LeaderEpoch(0))


class _AlreadyFormatted(Exception):
    """A directory is formatted already, and --ignore-formatted is not given."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Everything that formatting writes."""

    config: NodeConfig
    cluster_id: str
    directories: tuple[str, ...]
    """The first one holds the metadata log."""
    records: tuple[VersionedRecord, ...]
    voters: tuple[FormattedVoter, ...]
    metadata_directory_id: Uuid


ClusterIdOption = Annotated[
    str, typer.Option("--cluster-id", "-t", metavar="UUID", help="Id of the cluster.")
]
ConfigOption = Annotated[
    str, typer.Option("--config", "-c", metavar="FILE", help="The node's server.properties.")
]
StandaloneOption = Annotated[
    bool,
    typer.Option(
        "--standalone", "-s", help="Start a dynamic quorum with this node as its only voter."
    ),
]
NoInitialControllersOption = Annotated[
    bool,
    typer.Option(
        "--no-initial-controllers",
        "-N",
        help="Format without voters, to join a dynamic quorum later.",
    ),
]
InitialControllersOption = Annotated[
    str | None,
    typer.Option(
        "--initial-controllers",
        "-I",
        metavar="VOTERS",
        help="Start a dynamic quorum of id@host:port:directoryId,... (the same on all nodes).",
    ),
]
ReleaseVersionOption = Annotated[
    str | None,
    typer.Option(
        "--release-version",
        "-r",
        metavar="X.Y",
        help="Use the metadata.version of this release.",
    ),
]
FeatureOption = Annotated[
    list[str] | None,
    typer.Option("--feature", "-f", metavar="NAME=LEVEL", help="Feature level."),
]
IgnoreFormattedOption = Annotated[
    bool, typer.Option("--ignore-formatted", "-g", help="Skip directories that are formatted.")
]
AddScramOption = Annotated[
    list[str] | None,
    typer.Option(
        "--add-scram", "-S", metavar="SCRAM", help="SCRAM-SHA-256=[name=...,password=...]"
    ),
]


@app.command()
def format_command(
    cluster_id: ClusterIdOption,
    config: ConfigOption,
    standalone: StandaloneOption = False,
    no_initial_controllers: NoInitialControllersOption = False,
    initial_controllers: InitialControllersOption = None,
    release_version: ReleaseVersionOption = None,
    feature: FeatureOption = None,
    ignore_formatted: IgnoreFormattedOption = False,
    add_scram: AddScramOption = None,
) -> None:
    """Format the log directories of a node for a cluster."""
    try:
        node = load_config(
            read_properties(config), os.environ, file_name=config, host_name=lambda: "localhost"
        )
        voters = None if initial_controllers is None else parse_voters(initial_controllers)
        kind = quorum_kind(
            static_voters=bool(node.settings.strings("controller.quorum.voters")),
            standalone=standalone,
            joins=no_initial_controllers,
            initial=voters is not None,
        )
        has_to_choose = node.is_controller and not no_initial_controllers
        if not kind.writes_voters and kind.kraft_version and has_to_choose:
            raise FormatRefused(
                "controller.quorum.voters is not set: use one of --standalone, "
                "--initial-controllers and --no-initial-controllers"
            )
        levels = feature_levels(release_version, feature or (), kind)
        records = [*bootstrap_records(levels), *_credentials(add_scram or (), levels)]
        plan = _plan(node, cluster_id, records, _voters(node, voters, standalone))
        _run(OsFileSystem(), plan, ignore_formatted=ignore_formatted)
    except (FormatRefused, UnreadableFile, ConfigError, StorageError) as error:
        sys.stderr.write(f"kraft-wire format: {error}\n")
        raise typer.Exit(_COULD_NOT_RUN) from error
    except _AlreadyFormatted as error:
        sys.stderr.write(f"kraft-wire format: {error}\n")
        raise typer.Exit(_ALREADY_FORMATTED) from error


def _credentials(texts: Sequence[str], levels: dict[str, int]) -> list[VersionedRecord]:
    if texts and levels[METADATA_VERSION] < SCRAM_FROM:
        raise FormatRefused("SCRAM credentials need the metadata.version of 3.5-IV2 or later")
    return [VersionedRecord(parse_scram(text)) for text in texts]


def _voters(
    node: NodeConfig, initial: list[FormattedVoter] | None, standalone: bool
) -> list[FormattedVoter]:
    if initial is not None or not standalone:
        return initial or []
    if not node.is_controller:
        raise FormatRefused("You can only use --standalone on a controller.")
    listener = node.controller_listener
    if listener is None:
        raise FormatRefused(
            "--standalone needs a listener for the controller: add one of "
            "controller.listener.names to listeners"
        )
    directory_id = random_uuid(SystemRandomSource())
    address = listener.advertised_host, listener.advertised_port
    return [FormattedVoter(node.node_id, *address, directory_id)]


def _plan(
    node: NodeConfig,
    cluster_id: str,
    records: Sequence[VersionedRecord],
    voters: Sequence[FormattedVoter],
) -> _Plan:
    if not cluster_id.strip() or not (cluster_id.isascii() and cluster_id.isprintable()):
        raise FormatRefused("a cluster id must be non-empty printable ASCII")
    chosen = own_directory(voters, node.node_id)
    return _Plan(
        config=node,
        cluster_id=cluster_id,
        directories=node.all_dirs,
        records=tuple(records),
        voters=tuple(voters),
        metadata_directory_id=chosen or random_uuid(SystemRandomSource()),
    )


def _run(fs: FileSystem, plan: _Plan, *, ignore_formatted: bool) -> None:
    """Format unformatted directories; the identity, which marks a complete one, comes last."""
    fresh = [path for path in plan.directories if read_meta_properties(fs, path) is None]
    done = [path for path in plan.directories if path not in fresh]
    for path in done:
        _check_owner(fs, path, plan)
    if done and not ignore_formatted:
        raise _AlreadyFormatted(
            f"log directory {done[0]} is already formatted; --ignore-formatted skips it and "
            "formats the others"
        )
    if not fresh:
        sys.stdout.write("All of the log directories are already formatted.\n")
    for path in fresh:
        _format_directory(fs, plan, path)


def _check_owner(fs: FileSystem, path: str, plan: _Plan) -> None:
    meta = read_meta_properties(fs, path)
    assert meta is not None, path
    node_id = plan.config.node_id
    if (meta.cluster_id, meta.node_id) == (plan.cluster_id, node_id):
        return
    own = f"--cluster-id {meta.cluster_id}" if meta.cluster_id != plan.cluster_id else ""
    if meta.node_id != node_id:
        own += f"{' and ' if own else ''}node.id={meta.node_id}"
    raise FormatRefused(
        f"log directory {path} belongs to node {meta.node_id} of cluster "
        f"{meta.cluster_id}: set another directory in log.dirs, use {own}, or empty it"
    )


def _format_directory(fs: FileSystem, plan: _Plan, path: str) -> None:
    wall_ms = time.time_ns() // 1_000_000
    is_metadata = path == plan.config.metadata_dir
    fs.make_directory(path)
    data = bootstrap_checkpoint_bytes(plan.records, wall_ms)
    replace_file(fs, f"{path}/{BOOTSTRAP_CHECKPOINT}", data)
    if is_metadata and plan.voters:
        _write_voters(fs, plan, path, wall_ms)
    directory_id = plan.metadata_directory_id if is_metadata else random_uuid(SystemRandomSource())
    node_id = plan.config.node_id
    write_meta_properties(fs, path, MetaProperties(plan.cluster_id, node_id, directory_id))
    what = "data"
    if is_metadata:
        voters = [voter.node_id for voter in plan.voters]
        what = "dynamic metadata" if voters else "metadata"
        what += " voter" if node_id in voters else ""
    level = {number: name for name, number in RELEASE_LEVELS.items()}[_level(plan)]
    sys.stdout.write(f"Formatting {what} directory {path} with metadata.version {level}.\n")


def _level(plan: _Plan) -> int:
    first = plan.records[0].record
    level = getattr(first, "feature_level", None)
    assert isinstance(level, int), first
    return level


def _write_voters(fs: FileSystem, plan: _Plan, path: str, wall_ms: int) -> None:
    directory = f"{path}/{METADATA_TOPIC}-0"
    fs.make_directory(directory)
    names = plan.config.settings.strings("controller.listener.names")
    writer = SnapshotWriter(fs, directory, _FORMATTED, attempt=0)
    writer.append(quorum_checkpoint_bytes(plan.voters, names[0], wall_ms))
    writer.freeze()
