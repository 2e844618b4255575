"""`meta.properties`: the cluster and node of a log directory (KIP-631, KIP-853, KIP-858).

A Java properties file, read as Java reads it: people edit it. An unknown version, a missing key or
a bad id is `CorruptCheckpoint`. Unknown keys are kept.
"""

from dataclasses import field

from kraft_wire.frozen import frozen
from kraft_wire.model import Uuid, uuid_from_text, uuid_to_text
from kraft_wire.properties import parse_properties
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint, number
from kraft_wire.storage.files import FileSystem, MissingFile, replace_file

__all__ = ["META_PROPERTIES", "MetaProperties", "read_meta_properties", "write_meta_properties"]

META_PROPERTIES = "meta.properties"
_VERSION = "1"
_NODE_ID_MAX = (1 << 31) - 1


@frozen
class MetaProperties:
    """The identity of one log directory."""

    cluster_id: str
    node_id: int
    directory_id: Uuid | None  # None in a directory that an older release formatted
    others: dict[str, str] = field(default_factory=dict)


def read_meta_properties(fs: FileSystem, directory: str) -> MetaProperties | None:
    """Return the identity, None in an unformatted directory; CorruptCheckpoint if damaged."""
    assert directory, "a directory is needed"
    path = f"{directory}/{META_PROPERTIES}"
    try:
        values = _properties(fs.read(path))
    except MissingFile:
        return None
    if values.pop("version", None) != _VERSION:
        raise CorruptCheckpoint(path, f"version is not {_VERSION}")
    for key in ("cluster.id", "node.id"):
        if not values.get(key):
            raise CorruptCheckpoint(path, f"{key} is missing")
    node_id = number(path, values.pop("node.id"))
    if not 0 <= node_id <= _NODE_ID_MAX:
        raise CorruptCheckpoint(path, f"node.id {node_id} is out of range")
    cluster_id = values.pop("cluster.id")
    directory_id = _directory_id(path, values.pop("directory.id", None))
    assert cluster_id, path
    return MetaProperties(cluster_id, node_id, directory_id, values)


def write_meta_properties(fs: FileSystem, directory: str, meta: MetaProperties) -> None:
    """Write the file, durably; keys in a fixed order, without a date."""
    assert meta.cluster_id, meta
    lines = ["#", f"node.id={meta.node_id}"]
    if meta.directory_id is not None:
        lines.append(f"directory.id={uuid_to_text(meta.directory_id)}")
    lines += [f"version={_VERSION}", f"cluster.id={_escaped(meta.cluster_id)}"]
    lines += [f"{_escaped(key)}={_escaped(value)}" for key, value in sorted(meta.others.items())]
    text = "".join(f"{line}\n" for line in lines)
    replace_file(fs, f"{directory}/{META_PROPERTIES}", text.encode("ascii"))


def _directory_id(path: str, text: str | None) -> Uuid | None:
    if text is None:
        return None
    try:
        directory_id = uuid_from_text(text)
    except ValueError as error:
        raise CorruptCheckpoint(path, str(error)) from error
    assert len(directory_id) == 16, text
    return directory_id


def _escaped(text: str) -> str:
    """Escape what would end a key or a value, and what a properties file cannot have as it is."""
    characters: list[str] = []
    for char in text:
        if char in "\\:=#! ":
            characters.append(f"\\{char}")
        elif " " < char <= "~":
            characters.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            characters += [f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)]
    return "".join(characters)


def _properties(data: bytes) -> dict[str, str]:
    """Return the entries; the last one of a key counts. Blanks behind a value do not."""
    return {entry.key: entry.value.strip() for entry in parse_properties(data.decode("latin-1"))}
