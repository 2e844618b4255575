"""How many tasks a member may get, as members fill up."""

__all__ = ["Quota"]


class Quota:
    """The even share of the tasks that are left among the members that have room left."""

    __slots__ = ("_members", "_per_member", "_tasks")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self._per_member = _rounded_up(tasks, members)

    def has_room(self, count: int) -> bool:
        """Whether a member with so many tasks may keep more."""
        return count < self._per_member

    def reached(self, count: int) -> None:
        """Note that a member has so many tasks now; one that is full takes its share with it."""
        if count == self._per_member:
            self._members -= 1
            self._tasks -= count
            self._per_member = _rounded_up(self._tasks, self._members)


def _rounded_up(tasks: int, members: int) -> int:
    """Divide as Java does, also when more members are full than there are: towards zero."""
    if members == 0:
        return 0
    quotient, rest = divmod(abs(tasks), abs(members))
    if (tasks < 0) != (members < 0):
        quotient = -quotient
    return quotient + (tasks > 0 and rest > 0)
