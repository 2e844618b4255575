"""`partition.metadata`: the topic id of a partition's directory (KIP-516), two lines of text."""

from kraft_wire.model import Uuid, uuid_from_text, uuid_to_text
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.files import FileSystem, MissingFile, replace_file

__all__ = ["read_topic_id", "write_topic_id"]

_NAME = "partition.metadata"
_VERSION_LINE = "version: 0"
_TOPIC_ID = "topic_id: "


def read_topic_id(fs: FileSystem, directory: str) -> Uuid | None:
    """Return the topic id, None without the file; CorruptCheckpoint if it is damaged."""
    path = f"{directory}/{_NAME}"
    try:
        text = fs.read(path).decode("ascii")
    except MissingFile:
        return None
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(path, "not ASCII") from error
    lines = text.removesuffix("\n").split("\n")
    if len(lines) != 2 or lines[0] != _VERSION_LINE or not lines[1].startswith(_TOPIC_ID):
        raise CorruptCheckpoint(path, "not the two lines version and topic_id")
    try:
        topic_id = uuid_from_text(lines[1].removeprefix(_TOPIC_ID))
    except ValueError as error:
        raise CorruptCheckpoint(path, str(error)) from error
    assert len(topic_id) == 16, topic_id
    return topic_id


def write_topic_id(fs: FileSystem, directory: str, topic_id: Uuid, *, durable: bool = True) -> None:
    """Write the file as Kafka does, without a newline at its end."""
    assert any(topic_id), directory
    text = f"{_VERSION_LINE}\n{_TOPIC_ID}{uuid_to_text(topic_id)}"
    replace_file(fs, f"{directory}/{_NAME}", text.encode("ascii"), durable=durable)
