"""Opens a node's log directories and checks that they belong together, and to this node.

Errors are `StartError`: one line for the user, and nothing changed. The embedded node formats its
own empty directory; for a configured node the error names the command to format it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from kraft_wire.metadata.directory_ids import RESERVED_DIRECTORIES
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.model import (
    RandomSource,
    ReportEvent,
    StorageError,
    TopicPartition,
    Uuid,
    random_uuid,
    uuid_to_text,
)
from kraft_wire.node.config.node_config import NodeConfig
from kraft_wire.node.config.quorum_config import raft_config, reachable, static_voters
from kraft_wire.node.disks.log_store import repair_command
from kraft_wire.node.disks.refused_appends import room
from kraft_wire.node.disks.torn_tails import report_torn_tail
from kraft_wire.node.quorum.metadata_opening import open_metadata_log
from kraft_wire.node.quorum.raft_io import RaftIo
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.log_directory import (
    LOCK,
    METADATA_PARTITION,
    LogDirectory,
    partition_of_directory,
    set_stray_aside,
)
from kraft_wire.storage.directory.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kraft_wire.storage.files import FileSystem, LockHeld
from kraft_wire.storage.segment import CorruptLog
from kraft_wire.storage.snapshots.metadata_snapshot import CorruptMetadataSnapshot
from kraft_wire.wire.message import DecodeLimits

__all__ = [
    "OpenDirectories",
    "StartError",
    "open_directories",
    "open_quorum",
    "set_strays_aside",
    "start_quorum",
]

_RESERVE_BYTES: Final = 1 << 20
"""Free bytes reserved for metadata and checkpoints: below them records are refused."""

_DAMAGE: Final = (CorruptLog, CorruptCheckpoint, CorruptMetadataSnapshot)


class StartError(Exception):
    """The reason why a node cannot start; the text is the whole line for the user."""


class OpenDirectories(NamedTuple):
    """The directories of a node, locked and opened."""

    data: list[LogDirectory]
    """Those of `log.dirs`, in its order."""
    metadata: LogDirectory
    """The one of the metadata log: `metadata.log.dir`, which may be one of them."""

    @property
    def all(self) -> list[LogDirectory]:
        """Each directory once, those with data first."""
        return self.data if self.metadata in self.data else [*self.data, self.metadata]

    @property
    def cluster_id(self) -> str:
        """The cluster that all of them belong to."""
        assert self.metadata.meta is not None, self.metadata.path
        return self.metadata.meta.cluster_id

    def close(self, broker_epoch: int) -> None:
        """Stop cleanly, once the metadata log is closed; checkpoints are of data alone."""
        for directory in self.data:
            directory.close(broker_epoch=broker_epoch)
        if self.metadata not in self.data:
            self.metadata.release()

    def release(self) -> None:
        """Unlock them; nothing is written."""
        for directory in self.all:
            directory.release()


def open_directories(
    fs: FileSystem,
    config: NodeConfig,
    random_source: RandomSource,
    cluster_id: str | None,
    wall_ms: int,
    report: ReportEvent = lambda name, **fields: None,
) -> OpenDirectories:
    """Lock and open every directory of `log.dirs`, and `metadata.log.dir` (KIP-631).

    An embedded node's are formatted if they are empty. `cluster_id` is the cluster that the user
    expects, None for any.
    """
    opened: dict[str, LogDirectory] = {}
    try:
        for path in config.all_dirs:
            opened[path] = _open(fs, path, config.settings.integer("storage.ballast.bytes"))
        found = [*opened.values()]
        if config.is_embedded and all(each.meta is None for each in found):
            _format(fs, config, found, random_source, cluster_id, wall_ms)
        _check_identity(config, found, cluster_id)
        _check_metadata_place(fs, found, config.metadata_dir)
        _complete_identity(fs, found, random_source)
    except StartError:
        for directory in opened.values():
            directory.release()
        raise
    for directory in found:
        report(
            "log_directory_opened",
            directory=directory.path,
            free_bytes=room(directory)["free_bytes"],
            was_clean=directory.was_clean,
        )
    return OpenDirectories([opened[path] for path in config.log_dirs], opened[config.metadata_dir])


def open_quorum(
    fs: FileSystem,
    directories: OpenDirectories,
    config: NodeConfig,
    random_source: RandomSource,
    link_ids: Iterator[int],
    report: ReportEvent,
    decode_limits: DecodeLimits,
    wall_ms: int,
) -> RaftIo:
    """Open the metadata log, and the replica over it.

    StartError names the damage and the command that shows more; every lock is released.
    """
    own = directories.metadata
    assert own.meta is not None, own.path
    assert own.meta.directory_id is not None, own.path
    try:
        replica_config = raft_config(config, own.meta.cluster_id, own.meta.directory_id)
        opened = open_metadata_log(fs, own, config.settings, static_voters(config), wall_ms)
        report_torn_tail(report, opened.log.log)
        replica_config = reachable(replica_config, opened.voters.latest)
        is_alone = len(opened.voters.latest) <= 1
        if config.is_controller and not replica_config.endpoints and not is_alone:
            raise StartError(
                f"the controllers {list(opened.voters.latest.nodes)} are the voters of these "
                "data: a listener of controller.listener.names is needed, so that they can "
                "reach this node"
            )
        return RaftIo(
            fs,
            own,
            opened,
            replica_config,
            random_source,
            link_ids=link_ids,
            report=report,
            decode_limits=decode_limits,
        )
    except (StorageError, MetadataFault) as error:
        directories.release()
        raise _metadata_refused(own, error) from error
    except BaseException:
        directories.release()
        raise


def start_quorum(raft: RaftIo, directories: OpenDirectories, start: Callable[[], None]) -> None:
    """Run the part of a start in which a quorum of one elects itself and registers.

    Errors as `open_quorum`: metadata is first replayed here.
    """
    raft.disk.flushes_inline = raft.replica.quorum.is_only_voter
    try:
        start()
    except (StorageError, MetadataFault) as error:
        directories.release()
        raise _metadata_refused(directories.metadata, error) from error
    except BaseException:
        directories.release()
        raise
    raft.disk.flushes_inline = False


def _metadata_refused(directory: LogDirectory, error: Exception) -> StartError:
    if not isinstance(error, _DAMAGE):
        return StartError(f"the metadata log cannot be opened: {error}")
    return StartError(
        f"the metadata log is refused: {error}; to show the damage, run: "
        f"{repair_command(directory.path, METADATA_PARTITION)}"
    )


def set_strays_aside(
    fs: FileSystem, directories: Sequence[LogDirectory], image: MetadataImage, node_id: int
) -> list[str]:
    """Rename the logs of partitions that are not this node's; return their new paths.

    An interrupted deletion or reassignment leaves them, and a topic of the same name must not
    begin with their records. They are kept, as in Kafka, because metadata can be lost too. A
    directory whose disk refuses the change goes offline.
    """
    strays: list[str] = []
    for directory in directories:
        try:
            found = [each for each in directory.logs if _is_stray(directory, each, image, node_id)]
            strays += [set_stray_aside(fs, directory, each) for each in found]
            if found:
                directory.settle()
        except StorageError as error:
            directory.note_error(None, error)
    return strays


def _is_stray(
    directory: LogDirectory, partition: TopicPartition, image: MetadataImage, node_id: int
) -> bool:
    """Return whether a log belongs to a partition without a replica on this node."""
    topic, log = image.topic(partition.topic), directory.logs[partition]
    if topic is None:
        return True
    if not any(log.topic_id):
        directory.assign_topic_id(partition, topic.topic_id)
    view = topic.partitions.get(partition.partition)
    return view is None or node_id not in view.replicas or topic.topic_id != log.topic_id


def _open(fs: FileSystem, path: str, ballast_bytes: int) -> LogDirectory:
    made = _missing(fs, path)
    try:
        if ballast_bytes:
            _refuse_small_disk(fs, path, made, ballast_bytes)
        directory = LogDirectory.open(
            fs, path, ballast_bytes=ballast_bytes, reserve_bytes=_RESERVE_BYTES
        )
        for each in made:
            fs.sync_directory(_parent(each))
        return directory
    except LockHeld:
        raise StartError(f"log directory {path} is locked: another node is using it") from None
    except StorageError as error:
        raise StartError(f"log directory {path} cannot be used: {error}") from error


def _refuse_small_disk(fs: FileSystem, path: str, made: Sequence[str], ballast_bytes: int) -> None:
    """Raise StartError if a disk has no room for records, before anything is written to it.

    A directory in use is only refused if its whole disk is too small: a full one must start, so
    that it can be read and space can be freed. One that has logs is in use, even if the power was
    lost before the name of its lock file was on the disk.
    """
    place = _parent(made[-1]) if made else path
    needed_bytes = ballast_bytes + _RESERVE_BYTES
    is_new = bool(made) or not (fs.exists(f"{path}/{LOCK}") or _has_logs(fs, path))
    free_bytes, total_bytes = fs.free_bytes(place), fs.total_bytes(place)
    if not total_bytes:
        return  # a file system without a known size
    if total_bytes < needed_bytes or (is_new and free_bytes < needed_bytes):
        raise StartError(
            f"log directory {path}: the disk is too small: {needed_bytes} bytes are needed, "
            f"{free_bytes} of {total_bytes} are free; the reserve (storage.ballast.bytes) is "
            f"{ballast_bytes} bytes"
        )


def _has_logs(fs: FileSystem, path: str) -> bool:
    """Return whether a directory has that of a partition."""
    return any(partition_of_directory(name) is not None for name in fs.names(path))


def _missing(fs: FileSystem, path: str) -> list[str]:
    """Return the directories that opening `path` creates; each must be durable in its parent."""
    missing = []
    at = path.rstrip("/")
    while at and not fs.exists(at):
        missing.append(at)
        at = at.rpartition("/")[0]
    return missing


def _parent(path: str) -> str:
    head, slash, _ = path.rpartition("/")
    return head or slash or "."


def _format(
    fs: FileSystem,
    config: NodeConfig,
    directories: Sequence[LogDirectory],
    random_source: RandomSource,
    cluster_id: str | None,
    wall_ms: int,
) -> None:
    from kraft_wire.node.disks.formatting import (  # needed once per directory
        DEFAULT_LEVELS,
        format_directory,
    )

    cluster = cluster_id or uuid_to_text(random_uuid(random_source))
    for directory in directories:
        format_directory(
            fs,
            directory.path,
            cluster_id=cluster,
            node_id=config.node_id,
            directory_id=random_uuid(random_source),
            levels=DEFAULT_LEVELS,
            wall_ms=wall_ms,
        )
        directory.meta = read_meta_properties(fs, directory.path)


def _check_identity(
    config: NodeConfig, directories: Sequence[LogDirectory], cluster_id: str | None
) -> None:
    expected = cluster_id
    seen: dict[Uuid, str] = {}
    for directory in directories:
        meta = directory.meta
        if meta is None:
            raise StartError(
                f"log directory {directory.path} is not formatted: "
                "run `kraft-wire format -t CLUSTER_ID -c server.properties` first"
            )
        if meta.node_id != config.node_id:
            raise StartError(
                f"log directory {directory.path} belongs to node {meta.node_id}, "
                f"this is node {config.node_id}"
            )
        if expected is not None and meta.cluster_id != expected:
            raise StartError(
                f"log directory {directory.path} belongs to cluster {meta.cluster_id}, "
                f"expected {expected}"
            )
        expected = meta.cluster_id
        _check_directory_id(directory, meta, seen)


def _check_metadata_place(
    fs: FileSystem, directories: Sequence[LogDirectory], metadata_dir: str
) -> None:
    """Refuse a metadata log elsewhere (Kafka: KafkaRaftServer.initializeLogDirs).

    The entries of `log.dirs` are in another order then, or disks are mounted the other way round:
    the node would begin a new cluster, and every log would be a stray of it.
    """
    for directory in directories:
        path = f"{directory.path}/{METADATA_PARTITION}"
        if directory.path != metadata_dir and fs.exists(path):
            raise StartError(
                f"Found unexpected metadata location in data directory `{path}` "
                f"(the configured metadata directory is {metadata_dir})."
            )


def _complete_identity(
    fs: FileSystem, directories: Sequence[LogDirectory], random_source: RandomSource
) -> None:
    """Give a directory that a release before 3.7 formatted an id (KIP-858), durably."""
    for directory in directories:
        meta = directory.meta
        assert meta is not None, directory.path
        if meta.directory_id is None:
            complete = replace(meta, directory_id=random_uuid(random_source))
            try:
                write_meta_properties(fs, directory.path, complete)
            except StorageError as error:
                raise StartError(
                    f"log directory {directory.path} cannot be used: {error}"
                ) from error
            directory.meta = complete


def _check_directory_id(
    directory: LogDirectory, meta: MetaProperties, seen: dict[Uuid, str]
) -> None:
    if meta.directory_id is None:
        return
    if int.from_bytes(meta.directory_id) < RESERVED_DIRECTORIES:
        directory_id = uuid_to_text(meta.directory_id)
        raise StartError(
            f"log directory {directory.path} has a reserved directory.id, {directory_id}"
        )
    other = seen.setdefault(meta.directory_id, directory.path)
    if other != directory.path:
        raise StartError(f"log directories {other} and {directory.path} have the same directory.id")
