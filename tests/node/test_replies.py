"""Answers as frames: length, correlation id, and the records of logs as slices of their files."""

import struct

from kraft_wire.model import FileSlice
from kraft_wire.node.outputs import Close, Reply
from kraft_wire.node.requests.replies import encoded_reply
from kraft_wire.wire.generated import share_fetch
from kraft_wire.wire.generated.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorResponse
from kraft_wire.wire.header import RequestHeader


class LogFile:
    """Eight different bytes."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        return b"abcdefgh"[position : position + size_bytes]

    def fileno(self) -> int:
        return -1


def answer(*records: FileSlice | bytes) -> FetchResponse:
    partitions = [
        PartitionData(partition_index=index, records=each) for index, each in enumerate(records)
    ]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


def test_what_stands_between_slices_is_one_buffer() -> None:
    file = LogFile()
    response = answer(FileSlice(file, 0, 3), b"", FileSlice(file, 3, 5))
    for version, kinds in ((4, [bytes, FileSlice] * 2), (12, [bytes, FileSlice] * 2 + [bytes])):
        reply = encoded_reply(7, RequestHeader(1, version, 99, None), response)
        assert isinstance(reply, Reply)
        assert [type(buffer) for buffer in reply.buffers] == kinds
        frame = b"".join(
            buffer.read() if isinstance(buffer, FileSlice) else buffer for buffer in reply.buffers
        )
        body = b"\0" * (version >= 12) + response.encode(version)
        assert frame == struct.pack(">ii", 4 + len(body), 99) + body
        assert reply.size_bytes == len(frame)


def test_records_of_a_share_group_stay_slices() -> None:
    """932-FETCH-07: they leave by sendfile, as those of other fetches."""
    data = share_fetch.PartitionData(records=FileSlice(LogFile(), 1, 4))
    topic = share_fetch.ShareFetchableTopicResponse(partitions=[data])
    response = share_fetch.ShareFetchResponse(responses=[topic])
    for version in (1, 2):
        header = RequestHeader(response.API_KEY, version, 99, None)
        reply = encoded_reply(7, header, response)
        assert isinstance(reply, Reply)
        assert [type(buffer) for buffer in reply.buffers] == [bytes, FileSlice, bytes]


def test_answer_without_slices_is_one_buffer() -> None:
    reply = encoded_reply(7, RequestHeader(1, 4, 99, None), answer(b"", b""))
    assert isinstance(reply, Reply)
    assert [type(buffer) for buffer in reply.buffers] == [bytes]


def test_answer_that_no_version_can_carry_closes_the_connection() -> None:
    """A string of more than 32,767 bytes has no length in a version that is not flexible."""
    response = FindCoordinatorResponse(host="h" * 32_768, error_message="")
    header = RequestHeader(10, 2, 99, "client")
    closed = encoded_reply(7, header, response)
    assert isinstance(closed, Close)
    assert closed.connection_id == 7
    assert closed.rejection is not None
    told = closed.rejection
    assert (told.reason, told.api) == ("unencodable", "FindCoordinator")
    assert (told.version, told.correlation_id, told.client_id) == (2, 99, "client")
    response.host = "h" * 32_767
    assert isinstance(encoded_reply(7, header, response), Reply)
