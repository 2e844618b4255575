"""The records of an image's snapshot, decoded: each an object of its own."""

from kraft_wire.metadata.image import MetadataImage
from kraft_wire.metadata.image_records import ImageOrder, snapshot_values
from kraft_wire.metadata.records import VersionedRecord, decode_record

__all__ = ["snapshot_records"]


def snapshot_records(
    image: MetadataImage, order: ImageOrder | None = None
) -> list[VersionedRecord]:
    """Return what `snapshot_values` yields as bytes."""
    return [decode_record(value) for value in snapshot_values(image, order)]
