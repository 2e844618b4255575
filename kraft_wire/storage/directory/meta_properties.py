"""`meta.properties`: the cluster and node of a log directory (KIP-631, KIP-853, KIP-858).

A Java properties file, in the subset that Kafka writes: comments, and `key=value` with `:` and `\\`
escaped. Strict: an unknown version, a missing or repeated key or a bad id is `CorruptCheckpoint`.
Unknown keys are kept, as in Kafka.
"""

from dataclasses import field

from kraft_wire.frozen import frozen
from kraft_wire.model import Uuid, uuid_from_text, uuid_to_text
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
        values = _properties(path, fs.read(path))
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
    """Escape characters that would end a key or a value."""
    assert text.isascii(), text
    assert "\n" not in text, text
    return "".join(f"\\{char}" if char in "\\:=#! " else char for char in text)


def _properties(path: str, data: bytes) -> dict[str, str]:
    """Parse `key=value` lines in the form that Kafka writes; each key once."""
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(path, f"not ASCII at byte {error.start}") from error
    values: dict[str, str] = {}
    for line in text.split("\n"):
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        key, separator, value = _split(line.strip("\r"))
        if not separator or not key or key in values:
            raise CorruptCheckpoint(path, f"no plain, single key=value: {line!r}")
        values[key] = value
    assert all(values), path
    return values


def _split(line: str) -> tuple[str, str, str]:
    """Return (key, separator, value) without escapes; the separator is empty if missing."""
    parts, separator = ["", ""], ""
    characters = iter(line)
    for char in characters:
        if char == "\\":
            parts[bool(separator)] += next(characters, "")
        elif char in "=:" and not separator:
            separator = char
        else:
            parts[bool(separator)] += char
    assert len(parts) == 2, parts
    return parts[0].strip(), separator, parts[1].strip()
