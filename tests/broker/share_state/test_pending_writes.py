"""What a written state says to the writes that are begun and not answered."""

from kraft_wire.broker.share_persister import SharePartitionKey, ShareStateWrite
from kraft_wire.broker.share_state.calls import CallKind, StateCall
from kraft_wire.broker.share_state.pending_call import PendingCall, PendingWrites
from kraft_wire.model import LeaderEpoch, Offset, Uuid

KEY = SharePartitionKey("g", Uuid(b"0123456789abcdef"), 0)


def call(start_offset: int, count: int) -> PendingCall:
    write = ShareStateWrite(1, LeaderEpoch(2), Offset(start_offset), count, ())
    return PendingCall(StateCall(CallKind.WRITE, KEY, write), lambda call, result, at: None)


def told(each: PendingCall) -> tuple[int, int]:
    write = each.call.argument
    assert isinstance(write, ShareStateWrite)
    return write.start_offset, write.delivery_complete_count


def test_earlier_writes_take_over_what_is_written_and_later_ones_do_not() -> None:
    """A write that is tried again comes behind later ones, and must not take their start back."""
    writes = PendingWrites()
    first, unchanged, second, third = call(5, 1), call(-1, 1), call(9, 3), call(7, 4)
    for each in (first, unchanged, second, third):
        writes.begun(each)
    writes.ended(second, is_written=True)
    assert [told(each) for each in (first, unchanged, third)] == [(9, 3), (-1, 3), (7, 4)]
    writes.ended(third, is_written=False)
    assert [told(each) for each in (first, unchanged)] == [(9, 3), (-1, 3)]
