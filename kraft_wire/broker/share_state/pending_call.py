"""A call that is not answered yet, and the writes among them by share partition."""

from collections.abc import Callable

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_persister import PersisterResult, SharePartitionKey, ShareStateWrite
from kraft_wire.broker.share_state.calls import StateCall
from kraft_wire.broker.share_state.state import UNCHANGED
from kraft_wire.frozen import slotted

__all__ = ["PendingCall", "PendingWrites"]


@slotted(eq=False)
class PendingCall:
    """A call, how often it was made, and where."""

    call: StateCall
    answered: "Callable[[PendingCall, PersisterResult, ClockReading], None]"
    """Called once, with the final result."""
    asked: int | None = None
    """The broker that was asked last."""
    tries: int = 0
    lookups: int = 0
    """Successive failures to find a coordinator."""
    is_resting: bool = False
    due_ms: int = 0
    """When the pause ends, while it rests."""


class PendingWrites:
    """The writes that are not answered yet, in the order in which they were begun."""

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: dict[SharePartitionKey, dict[PendingCall, None]] = {}

    def begun(self, call: PendingCall) -> None:
        """Note a call, if it is a write."""
        if isinstance(call.call.argument, ShareStateWrite):
            self._by_key.setdefault(call.call.key, {})[call] = None

    def ended(self, call: PendingCall, *, is_written: bool) -> None:
        """Drop a call; a success is taken over by the earlier writes that may come after it."""
        write = call.call.argument
        if not isinstance(write, ShareStateWrite):
            return
        pending = self._by_key[call.call.key]
        if is_written:
            for earlier in pending:
                if earlier is call:
                    break
                _take_over(earlier, write)
        del pending[call]
        if not pending:
            del self._by_key[call.call.key]


def _take_over(earlier: PendingCall, written: ShareStateWrite) -> None:
    write = earlier.call.argument
    assert isinstance(write, ShareStateWrite), earlier
    start_offset = write.start_offset
    if start_offset != UNCHANGED:
        start_offset = max(start_offset, written.start_offset)
    changed = write._replace(
        start_offset=start_offset, delivery_complete_count=written.delivery_complete_count
    )
    earlier.call = earlier.call._replace(argument=changed)
