"""How the `groups` verbs print groups: tables, and the objects of `--json`."""

from collections.abc import Sequence

from kraft_wire.cli.groups.facts import GroupFacts, Member, OffsetRow
from kraft_wire.cli.output import new_table, print_table

__all__ = ["group_json", "print_members", "print_offsets", "print_states"]


def print_offsets(described: Sequence[tuple[GroupFacts, list[OffsetRow], str]]) -> None:
    """Print a line for each partition."""
    columns = ("group", "topic", "partition", "committed", "end", "lag", "member", "host", "client")
    table = new_table(*columns)
    for facts, rows, _ in described:
        for each in rows:
            member = each.member
            owner = ("-", "-", "-") if member is None else _member_cells(member)
            numbers = (each.committed_offset, each.log_end_offset, each.lag)
            cells = ["-" if number is None else str(number) for number in numbers]
            table.add_row(facts.group, each.topic, str(each.partition), *cells, *owner)
    print_table(table)


def print_members(described: Sequence[GroupFacts]) -> None:
    """Print a line for each member."""
    table = new_table("group", "member", "host", "client", "partitions")
    for facts in described:
        for member in facts.members:
            listed = " ".join(map(str, member.partitions)) or "none"
            table.add_row(facts.group, *_member_cells(member), listed)
    print_table(table)


def print_states(described: Sequence[tuple[GroupFacts, list[OffsetRow], str]]) -> None:
    """Print a line for each group."""
    table = new_table("group", "coordinator", "assignor", "state", "members", "lag")
    for facts, rows, address in described:
        lag = sum(each.lag or 0 for each in rows)
        cells = (facts.assignor or "-", facts.state, str(len(facts.members)), str(lag))
        table.add_row(facts.group, address, *cells)
    print_table(table)


def _member_cells(member: Member) -> tuple[str, str, str]:
    return member.instance_id or member.member_id, member.host, member.client_id


def group_json(facts: GroupFacts, rows: Sequence[OffsetRow], address: str) -> dict[str, object]:
    """Return a group, its offsets and where its coordinator is, as `--json` prints it."""
    return {
        "group": facts.group,
        "type": facts.kind,
        "state": facts.state,
        "coordinator": address,
        "assignor": facts.assignor or None,
        "lag": sum(each.lag or 0 for each in rows),
        "members": [
            {
                "member_id": each.member_id,
                "instance_id": each.instance_id,
                "client_id": each.client_id,
                "host": each.host,
                "partitions": [key._asdict() for key in each.partitions],
                **(_tasks_json(each) if facts.kind == "streams" else {}),
            }
            for each in facts.members
        ],
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "committed_offset": each.committed_offset,
                "log_end_offset": each.log_end_offset,
                "lag": each.lag,
                "member_id": None if each.member is None else each.member.member_id,
            }
            for each in rows
        ],
    }


def _tasks_json(member: Member) -> dict[str, object]:
    return {
        "active_tasks": list(member.active_tasks),
        "standby_tasks": list(member.standby_tasks),
    }
