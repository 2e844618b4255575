"""Findings of strict mode: bytes that Apache's decoders accept and its encoders never write.

A finding is not an error: the bytes can be decoded. Findings are bytes after a message, malformed
UTF-8, unusual booleans, overlong varints, tags that are repeated, unordered or of a wrong size,
lengths below -1, and record batches whose fields contradict each other.

Invalid bytes raise the decoder's error.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kraft_wire.wire.message import Buffer
from kraft_wire.wire.primitives import encode_unsigned_varint
from kraft_wire.wire.records.legacy_batch import LegacyBatch
from kraft_wire.wire.records.memory_records import iter_batches
from kraft_wire.wire.records.record_batch import HEADER_BYTES, RecordBatch
from kraft_wire.wire.schema import MessageTable, includes
from kraft_wire.wire.walker import decode_slowly

__all__ = ["StrictFinding", "message_findings", "records_findings", "varint_findings"]

_KNOWN_ATTRIBUTES: Final = 0x7F
_TAG_COUNT: Final = "tagged_fields.count"
_CLIENT_ID: Final = "client_id"  # the one string that is never compact, in RequestHeader


class StrictFinding(NamedTuple):
    """One finding: its place and kind."""

    field: str
    byte: int
    what: str


class _OpenTag(NamedTuple):
    path: str
    content_at: int
    size: int


def message_findings(
    table: MessageTable, data: Buffer, version: int, offset: int = 0
) -> list[StrictFinding]:
    """Return the findings in a message that begins at `offset` and should end with `data`."""
    collector = _Collector(data, includes(table.flexible, version))
    _, end = decode_slowly(table, data, version, offset, visit=collector.visit)
    collector.close("", end)
    findings = collector.findings
    if version > table.max_version:
        findings.append(
            StrictFinding(table.name, offset, f"version {version} is not in the schema")
        )
    if end < len(data):
        findings.append(
            StrictFinding(table.name, end, f"{len(data) - end} bytes after the message")
        )
    return findings


class _Collector:
    """A visitor of a walk through a message that notes findings."""

    def __init__(self, data: Buffer, is_flexible: bool) -> None:
        self.data = memoryview(data)
        self.is_flexible = is_flexible
        self.findings: list[StrictFinding] = []
        self.last_tags: dict[str, int] = {}
        self.open_tags: list[_OpenTag] = []
        self.last_end = 0
        self.last_path = ""

    def visit(self, path: str, start: int, end: int, value: object) -> None:
        """Check one value that was read; the signature is the walker's."""
        self.close(path, self.last_end)
        if isinstance(value, bool):
            if self.data[start] > 1:
                self.note(path, start, f"boolean is {self.data[start]}")
        elif isinstance(value, str):
            self.look_at_text(path, start, end)
        elif isinstance(value, int):
            self.look_at_integer(path, start, end, value)
        self.last_end = end
        self.last_path = path

    def note(self, path: str, byte: int, what: str) -> None:
        """Add one finding."""
        self.findings.append(StrictFinding(path, byte, what))

    def look_at_text(self, path: str, start: int, end: int) -> None:
        """Note text with invalid UTF-8."""
        try:
            str(self.data[start:end], "utf-8")
        except UnicodeDecodeError as error:
            self.note(path, start + error.start, f"malformed UTF-8: {error.reason}")

    def look_at_integer(self, path: str, start: int, end: int, value: int) -> None:
        """Note unusual lengths and tags; all values of fields are valid."""
        if path.endswith(".length"):
            if value < -1:
                self.note(path, start, f"length {value} for null")
            if self.is_flexible and not path.startswith(_CLIENT_ID):
                self.look_at_varint(path, start, end, value + 1)
        elif path.endswith(_TAG_COUNT):
            if value < 0:
                self.note(path, start, f"{value} tagged fields")
            self.look_at_varint(path, start, end, value)
        elif path.endswith(".tag"):
            self.look_at_varint(path, start, end, value)
            self.look_at_tag(path, start, value)
        elif path.endswith(".size") and self.last_path == path.removesuffix("size") + "tag":
            self.look_at_varint(path, start, end, value)
            if not path.endswith("].size"):
                self.open_tags.append(_OpenTag(path.removesuffix(".size"), end, value))

    def look_at_varint(self, path: str, start: int, end: int, value: int) -> None:
        """Note a varint that is longer than its value needs."""
        self.findings += varint_findings(path, start, end - start, value & 0xFFFFFFFF)

    def look_at_tag(self, path: str, start: int, tag: int) -> None:
        """Note a tag that is not above the previous one in its section."""
        owner = path.removesuffix(".tag").rpartition(".")[0]
        before = self.last_tags.get(owner, -1)
        if tag == before:
            self.note(path, start, f"tag {tag} is repeated")
        elif tag < before:
            self.note(path, start, f"tag {tag} after tag {before}")
        self.last_tags[owner] = tag

    def close(self, path: str, end: int) -> None:
        """Compare sizes of the known tags that `path` has left."""
        while self.open_tags and not self.is_inside(path, self.open_tags[-1].path):
            tag = self.open_tags.pop()
            used = end - tag.content_at
            if used != tag.size:
                what = f"size {tag.size}, but the value takes {used} bytes"
                self.note(tag.path, tag.content_at, what)

    def is_inside(self, path: str, tagged: str) -> bool:
        """Whether `path` is still in a tagged field's value; the same tag again ends it."""
        if path == tagged:
            return True
        return path.startswith((f"{tagged}.", f"{tagged}[")) and path != f"{tagged}.tag"


def varint_findings(path: str, byte: int, size_bytes: int, raw: int) -> Iterator[StrictFinding]:
    """Yield a finding for an unsigned varint with more bytes than its value needs."""
    needed = len(encode_unsigned_varint(raw))
    if size_bytes > needed:
        yield StrictFinding(path, byte, f"varint of {size_bytes} bytes where {needed} are enough")


def records_findings(data: Buffer) -> Iterator[StrictFinding]:
    """Yield the findings in a run of batches."""
    position = 0
    for index, batch in enumerate(iter_batches(data)):
        for what in _batch_findings(batch):
            yield StrictFinding(f"batches[{index}]", position, what)
        position += batch.size_bytes
    if position < len(data):
        yield StrictFinding("", position, f"{len(data) - position} bytes of a batch that is cut")


def _batch_findings(batch: RecordBatch | LegacyBatch) -> Iterator[str]:
    if isinstance(batch, LegacyBatch):
        if not batch.inner_crcs_are_valid():
            yield "an inner message has a wrong checksum"
        return
    if batch.attributes & ~_KNOWN_ATTRIBUTES:
        yield f"attributes {batch.attributes:#x} have unknown bits"
    if batch.records_count == 0:
        if batch.size_bytes > HEADER_BYTES:
            yield f"no records, but {batch.size_bytes - HEADER_BYTES} bytes of body"
        return
    last_offset = batch.base_offset - 1
    for record in batch.iter_records():
        if record.attributes:
            yield f"record at offset {record.offset} has attributes {record.attributes:#x}"
        if record.offset <= last_offset:
            yield f"offset {record.offset} after {last_offset}"
        last_offset = record.offset
    if last_offset > batch.last_offset:
        yield f"last offset {last_offset}, but the header says {batch.last_offset}"
