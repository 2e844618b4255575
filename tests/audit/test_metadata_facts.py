"""What the audit takes from metadata records, whatever stands among them."""

from kraft_wire.audit.metadata_facts import MetadataFold
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.topic_record import TopicRecord

TOPIC = encode_record(VersionedRecord(TopicRecord(name="t", topic_id=Uuid(bytes(range(16))))))


def test_values_that_are_no_metadata_records_are_passed_over() -> None:
    fold = MetadataFold()
    fold.take([None, *(TOPIC[:size] for size in range(len(TOPIC))), b"\x01\xff\x00", TOPIC])
    assert list(fold.finish().topic_ids) == ["t"]
