"""The next step of a member from the tasks that it has to those of its target (KIP-1071).

A member gives back first, and then gets what no process is in the way of. One process never has an
active and a standby copy of a task, because both would use its state directory.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from kraft_wire.broker.coordination.epochs import epoch_after
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.streams.assigned_tasks import NOTHING_ASSIGNED, AssignedTasks
from kraft_wire.broker.groups.streams.member import MemberState, StreamsMember
from kraft_wire.broker.groups.streams.task_processes import TaskProcesses
from kraft_wire.broker.groups.streams.tasks import Tasks, TasksTuple
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["reconciled"]

_IsUnreleased: TypeAlias = Callable[[str, int], bool]


class _Aim(NamedTuple):
    epoch: int
    target: TasksTuple


class _Difference(NamedTuple):
    """Between what a member has and its target: kept, to be given back, given now."""

    kept: AssignedTasks
    revoked: AssignedTasks
    given: AssignedTasks
    is_unreleased: bool
    """Whether tasks of the target cannot be given yet."""


def reconciled(
    member: StreamsMember,
    target_epoch: int,
    target: TasksTuple,
    owned: TasksTuple | None,
    processes: TaskProcesses,
) -> StreamsMember | Refusal:
    """Return the member after its next step, perhaps unchanged.

    `owned` is what the member reports, None if it does not. FENCED_MEMBER_EPOCH: a later release
    left the member in a state that is not known here, and it has tasks.
    """
    aim = _Aim(target_epoch, target)
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch == target_epoch:
                return member
            return _next(member, member.member_epoch, aim, owned, processes)
        case MemberState.UNREVOKED_TASKS:
            if _still_has(owned, member.pending_revocation):
                return member
            return _next(member, epoch_after(member.member_epoch), aim, owned, processes)
        case MemberState.UNRELEASED_TASKS:
            return _next(member, member.member_epoch, aim, owned, processes)
        case _:
            if owned is None or not owned.is_empty:
                return Refusal(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The streams group member is in a unknown state. "
                    "The member must abandon all its tasks and rejoin.",
                )
            return _next(member, target_epoch, aim, owned, processes)


def _still_has(owned: TasksTuple | None, tasks: AssignedTasks) -> bool:
    return owned is None or owned.contains_any(tasks.without_epochs)


def _next(
    member: StreamsMember,
    epoch: int,
    aim: _Aim,
    owned: TasksTuple | None,
    processes: TaskProcesses,
) -> StreamsMember:
    """Return the member with the tasks that it may have now; `epoch` is that of giving back."""
    step = _difference(member, aim, processes)
    if not step.revoked.is_empty and _still_has(owned, step.revoked):
        return member.moved(MemberState.UNREVOKED_TASKS, epoch, step.kept, step.revoked)
    state = MemberState.UNRELEASED_TASKS if step.is_unreleased else MemberState.STABLE
    assigned = step.kept if step.given.is_empty else step.kept.merge(step.given)
    return member.moved(state, aim.epoch, assigned, NOTHING_ASSIGNED)


def _difference(member: StreamsMember, aim: _Aim, processes: TaskProcesses) -> _Difference:
    process_id = member.process_id

    def is_active_unreleased(subtopology_id: str, partition: int) -> bool:
        runner = processes.active(subtopology_id, partition)
        return runner is not None or processes.keeps_copy(process_id, subtopology_id, partition)

    def is_copy_unreleased(subtopology_id: str, partition: int) -> bool:
        runner = processes.active(subtopology_id, partition)
        return runner == process_id or processes.keeps_copy(process_id, subtopology_id, partition)

    had, target = member.assigned, aim.target
    active = _split(had.without_epochs.active, target.active, is_active_unreleased)
    standby = _split(had.standby, target.standby, is_copy_unreleased)
    warmup = _split(had.warmup, target.warmup, is_copy_unreleased)
    epochs = had.active
    return _Difference(
        AssignedTasks(_with_epochs(active.kept, epochs), standby.kept, warmup.kept),
        AssignedTasks(_with_epochs(active.revoked, epochs), standby.revoked, warmup.revoked),
        AssignedTasks(_in_epoch(active.given, aim.epoch), standby.given, warmup.given),
        active.is_unreleased or standby.is_unreleased or warmup.is_unreleased,
    )


class _Split(NamedTuple):
    """The difference of one kind of tasks."""

    kept: Tasks
    revoked: Tasks
    given: Tasks
    is_unreleased: bool


def _split(had: Tasks, target: Tasks, is_unreleased: _IsUnreleased) -> _Split:
    kept, revoked, given = {}, {}, {}
    is_any_unreleased = False
    for each in dict.fromkeys((*target, *had)):
        present, wanted = had.get(each, frozenset()), target.get(each, frozenset())
        waiting = frozenset(
            partition for partition in wanted - present if is_unreleased(each, partition)
        )
        kept[each], revoked[each] = present & wanted, present - wanted
        given[each] = wanted - present - waiting
        is_any_unreleased = is_any_unreleased or bool(waiting)
    return _Split(_filled(kept), _filled(revoked), _filled(given), is_any_unreleased)


def _filled(tasks: Tasks) -> Tasks:
    return {each: partitions for each, partitions in tasks.items() if partitions}


def _with_epochs(
    tasks: Tasks, epochs: Mapping[str, Mapping[int, int]]
) -> dict[str, dict[int, int]]:
    return {
        each: {partition: epochs[each][partition] for partition in sorted(partitions)}
        for each, partitions in tasks.items()
    }


def _in_epoch(tasks: Tasks, epoch: int) -> dict[str, dict[int, int]]:
    return {each: dict.fromkeys(sorted(partitions), epoch) for each, partitions in tasks.items()}
