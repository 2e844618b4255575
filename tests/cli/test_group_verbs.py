"""The verbs of `groups` on played groups: tables, JSON, dry runs and refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kraft_wire.cli.groups import admin, command
from kraft_wire.cli.groups.admin import listed_groups, offset_rows
from kraft_wire.cli.groups.command import app
from kraft_wire.cli.groups.facts import GroupFacts, Member, OffsetRow
from kraft_wire.client.refused import AdminRefused
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated import delete_groups, list_groups
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message
from tests.cli.played_cluster import PlayedCluster

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
NOW_MS = 1_700_000_000_000
ANN = Member("m-1", "i-1", "c-1", "/10.0.0.1", (T0, T1))
BOB = Member("m-2", None, "c-2", "/10.0.0.2", (), ("0_1",), ("0_2", "1_0"))
ACTIVE = GroupFacts("g", "consumer", "Stable", "range", (ANN, BOB))
EMPTY = GroupFacts("h", "classic", "Empty", "", ())
STREAMS = GroupFacts("s", "streams", "Stable", "", (BOB,))
ROWS = [
    OffsetRow("t", 0, 5, 9, 4, ANN),
    OffsetRow("t", 1, None, 7, None, BOB),
    OffsetRow("u", 0, 0, None, 0, None),
]


class PlayedGroups(PlayedCluster):
    """A cluster whose groups have facts, rows and committed offsets that are written down."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self.facts: dict[str, GroupFacts | None] = {"g": ACTIVE, "h": EMPTY, "s": STREAMS}
        self.committed = {T1: 5, T0: 2}
        self.starts = {T0: 1, T1: 1, T2: 1}
        self.ends = {T0: 9, T1: 9, T2: 9}
        self.done: list[Any] = []
        monkeypatch.setattr(command, "wall_ms", lambda: NOW_MS)
        monkeypatch.setattr(command, "GroupCoordinator", self._coordinator)
        for name in ("described_group", "find_group"):
            monkeypatch.setattr(command, name, lambda found: self.facts[found.group])
        monkeypatch.setattr(command, "offset_rows", lambda cluster, found, facts: ROWS)
        monkeypatch.setattr(command, "known_offsets", lambda found, facts: self.committed)
        for name in ("set_offsets", "delete_known_offsets"):
            monkeypatch.setattr(command, name, self._noted)

    def _coordinator(self, cluster: object, group: str) -> PlayedGroups:
        self.group = group
        return self

    def _noted(self, found: PlayedGroups, facts: GroupFacts | None, what: Any) -> None:
        self.done.append((found.group, facts, what))


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedGroups:
    """A cluster of played groups."""
    return PlayedGroups(monkeypatch)


def listed(*rows: tuple[str, str, str, str], error: int = 0) -> Message:
    """A broker's groups: name, state, type, protocol."""
    return list_groups.ListGroupsResponse(
        error_code=error,
        groups=[
            list_groups.ListedGroup(
                group_id=name, group_state=state, group_type=kind, protocol_type=protocol
            )
            for name, state, kind, protocol in rows
        ],
    )


def test_list_joins_the_brokers(played: PlayedGroups) -> None:
    first = listed(("b", "Stable", "consumer", "consumer"), ("a", "", "", ""))
    loading = listed(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    denied = listed(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    request = list_groups.ListGroupsRequest
    played.answers[request] = [first, loading, first, listed(("A", "Dead", "share", "")), denied]
    assert played.run(app, "list") == (
        0,
        "group  state   type      protocol\n"
        "a      ?       ?         -\n"
        "b      Stable  consumer  consumer\n",
        "",
    )
    rows = json.loads(played.run(app, "list --json")[1])
    assert rows[:2] == [
        {"group": "A", "state": "Dead", "type": "share", "protocol_type": ""},
        {"group": "a", "state": None, "type": None, "protocol_type": ""},
    ]
    text = "kraft-wire groups: broker 1: CLUSTER_AUTHORIZATION_FAILED\n"
    assert played.run(app, "list") == (1, "", text)


OFFSETS = (
    "group  topic  partition  committed  end  lag  member  host       client\n"
    "g      t      0          5          9    4    i-1     /10.0.0.1  c-1\n"
    "g      t      1          -          7    -    m-2     /10.0.0.2  c-2\n"
    "g      u      0          0          -    0    -       -          -\n"
)
MEMBERS = (
    "group  member  host       client  partitions\n"
    "g      i-1     /10.0.0.1  c-1     t-0 t-1\n"
    "g      m-2     /10.0.0.2  c-2     none\n"
)
STATES = (
    "group  coordinator  assignor  state   members  lag\n"
    "g      b:9092       range     Stable  2        4\n"
)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("g", OFFSETS),
        ("--group g --offsets --members --state", OFFSETS),
        ("g --members", MEMBERS),
        ("g --members --state", MEMBERS),
        ("g --members --offsets", OFFSETS),
        ("g --state", STATES),
        ("g --state --offsets", OFFSETS),
        ("g h --state", f"{STATES}h      b:9092       -         Empty   0        4\n"),
    ],
)
def test_group_is_described(played: PlayedGroups, words: str, text: str) -> None:
    assert played.run(app, f"describe {words}") == (0, text, "")


def test_json_of_a_group_has_all_of_it(played: PlayedGroups) -> None:
    group, streams = json.loads(played.run(app, "describe g -g s --json")[1])
    assert group == {
        "group": "g",
        "type": "consumer",
        "state": "Stable",
        "coordinator": "b:9092",
        "assignor": "range",
        "lag": 4,
        "members": [
            {
                "member_id": "m-1",
                "instance_id": "i-1",
                "client_id": "c-1",
                "host": "/10.0.0.1",
                "partitions": [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}],
            },
            {
                "member_id": "m-2",
                "instance_id": None,
                "client_id": "c-2",
                "host": "/10.0.0.2",
                "partitions": [],
            },
        ],
        "partitions": [
            {
                "topic": topic,
                "partition": partition,
                "committed_offset": committed,
                "log_end_offset": end,
                "lag": lag,
                "member_id": member,
            }
            for topic, partition, committed, end, lag, member in (
                ("t", 0, 5, 9, 4, "m-1"),
                ("t", 1, None, 7, None, "m-2"),
                ("u", 0, 0, None, 0, None),
            )
        ],
    }
    assert streams["assignor"] is None
    assert streams["members"][0] == {
        **group["members"][1],
        "active_tasks": ["0_1"],
        "standby_tasks": ["0_2", "1_0"],
    }


HEAD = "topic  partition  committed  new\n"
DRY = "dry run: nothing was changed; --execute commits the new offsets\n"


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ("h --all-topics --to-earliest", [(T0, 2, 1), (T1, 5, 1)]),
        ("-g h -t t --to-latest", [(T0, 2, 9), (T1, 5, 9), (T2, None, 9)]),
        ("h -t t:2,0 --to-offset 4", [(T0, 2, 4), (T2, None, 4)]),
        ("h -t t:1 --to-offset 0", [(T1, 5, 1)]),
        ("h -t t:1 --to-offset 10", [(T1, 5, 9)]),
        ("h -t t --to-current", [(T0, 2, 2), (T1, 5, 5), (T2, None, 9)]),
        ("h --all-topics --shift-by -3", [(T0, 2, 1), (T1, 5, 2)]),
        ("h --all-topics --shift-by 4", [(T0, 2, 6), (T1, 5, 9)]),
    ],
)
def test_offsets_are_reset_only_when_that_is_asked_for(
    played: PlayedGroups, words: str, rows: list[tuple[TopicPartition, int | None, int]]
) -> None:
    lines = [
        f"{key.topic:<5}  {key.partition:<9}  {'-' if old is None else old:<9}  {new}\n"
        for key, old, new in rows
    ]
    table = HEAD + "".join(lines)
    for dry in ("", "--dry-run", "--execute --dry-run"):
        assert played.run(app, f"reset-offsets {words} {dry}") == (0, table + DRY, "")
    assert played.done == []
    assert played.run(app, f"reset-offsets {words} --execute") == (0, table, "")
    assert played.done == [("h", EMPTY, {key: new for key, _, new in rows})]
    assert json.loads(played.run(app, f"reset-offsets {words} --json")[1]) == {
        "group": "h",
        "executed": False,
        "partitions": [
            {"topic": "t", "partition": key.partition, "committed_offset": old, "new_offset": new}
            for key, old, new in rows
        ],
    }


TARGETS = (
    "--to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, "
    "--by-duration"
)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("reset-offsets --to-latest -t t", 2, "give a group"),
        ("reset-offsets h -t t", 2, f"give one of {TARGETS}"),
        ("reset-offsets h -t t --to-latest --to-earliest", 2, f"give one of {TARGETS}"),
        ("reset-offsets h --to-latest", 2, "give --topic or --all-topics"),
        ("reset-offsets h --to-latest -t t --all-topics", 2, "give --topic or --all-topics"),
        ("reset-offsets h --shift-by 1 -t t", 1, "t-2 has no committed offset to shift"),
        ("reset-offsets h --to-latest -t t:3", 1, "topic t has no partition 3: it has 3"),
        ("reset-offsets g --to-latest -t t --execute", 1, "group g is Stable: stop its members fi"),
        ("reset-offsets h --by-duration P1X -t t", 2, '"P1X" is not an ISO 8601 duration such as '),
        ("describe", 2, "give groups, or --all-groups"),
        ("delete g --all-groups", 2, "give groups, or --all-groups"),
        ("delete-offsets -t t", 2, "give a group"),
        ("delete-offsets h", 2, "give --topic"),
        ("delete-offsets h -t t:x", 2, '"t:x" is not of the form topic or topic:0,1'),
    ],
)
def test_wrong_choice_is_refused(played: PlayedGroups, words: str, code: int, text: str) -> None:
    ended, out, err = played.run(app, words)
    assert (ended, out, played.done) == (code, "", [])
    assert err.startswith(f"kraft-wire groups: {text}")


def test_group_without_offsets_has_nothing_to_reset(played: PlayedGroups) -> None:
    played.committed = {}
    text = "kraft-wire groups: group h has no committed offsets\n"
    assert played.run(app, "reset-offsets h --all-topics --to-latest") == (1, "", text)
    played.facts["h"] = None
    assert played.run(app, "reset-offsets h -t t:0 --to-latest --execute")[0] == 0
    assert played.done == [("h", None, {T0: 9})]


def test_offsets_are_deleted_by_topic_and_partition(played: PlayedGroups) -> None:
    assert played.run(app, "delete-offsets g -t t:2,0") == (
        0,
        "g: t-0: deleted\ng: t-2: deleted\n",
        "",
    )
    shown = json.loads(played.run(app, "delete-offsets -g h -t t:1 --json")[1])
    assert shown == {"group": "h", "deleted": [{"topic": "t", "partition": 1}]}
    assert played.done == [("g", ACTIVE, [T0, T2]), ("h", EMPTY, [T1])]
    played.facts["h"] = GroupFacts("h", "share", "Empty", "", ())
    text = "kraft-wire groups: h is a share group: give --topic without partitions\n"
    assert played.run(app, "delete-offsets h -t t:1") == (2, "", text)
    assert played.run(app, "delete-offsets h -t t")[0] == 0


def test_groups_are_deleted_and_refusals_named(
    played: PlayedGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete(found: PlayedGroups) -> None:
        if found.group != "a":
            raise AdminRefused(f"group {found.group}", ErrorCode.NON_EMPTY_GROUP, None)

    monkeypatch.setattr(command, "delete_group", delete)
    assert played.run(app, "delete a") == (0, "a: deleted\n", "")
    assert json.loads(played.run(app, "delete a --json")[1]) == {"deleted": ["a"]}
    first, second = (f"kraft-wire groups: group {name}: NON_EMPTY_GROUP\n" for name in "bc")
    assert played.run(app, "delete b a c") == (1, "", second + first)
    found = [listed(("a", "", "", "")), listed(), listed(("c", "", "", "")), listed()]
    played.answers[list_groups.ListGroupsRequest] = found
    assert played.run(app, "delete --all-groups") == (0, "a: deleted\n", "")
    assert played.run(app, "delete --all-groups") == (1, "", second)


def test_requests_of_groups_and_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition has a row for its offset or its member; a deleted topic has no end."""
    played = PlayedCluster(monkeypatch)
    cluster: Any = played
    committed = {TopicPartition("gone", 0): 4, T1: 12, T0: 2}
    monkeypatch.setattr(admin, "committed_offsets", lambda found, keys: committed)
    size = type("Topic", (), {"name": "t", "partitions_count": 3})
    monkeypatch.setattr(admin, "topics", lambda connection: [size])
    played.ends = {T0: 9, T1: 9, T2: 9}
    member = Member("m", None, "c", "h", (T1, T2))
    rows = offset_rows(cluster, cluster, GroupFacts("g", "classic", "Stable", "", (member,)))
    assert [tuple(getattr(each, name) for name in OffsetRow.__slots__) for each in rows] == [
        ("gone", 0, 4, None, None, None),
        ("t", 0, 2, 9, 7, None),
        ("t", 1, 12, 9, 0, member),
        ("t", 2, None, 9, None, member),
    ]
    played.answers[list_groups.ListGroupsRequest] = [listed(("g", "", "", "")), listed()]
    assert [each.group for each in listed_groups(cluster)] == ["g"]
    result = delete_groups.DeletableGroupResult(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    answer = delete_groups.DeleteGroupsResponse(results=[result])
    played.answers[delete_groups.DeleteGroupsRequest] = answer
    with pytest.raises(AdminRefused, match=r"^group g: GROUP_ID_NOT_FOUND$"):
        admin.delete_group(cluster)
    assert played.sent[-1].groups_names == ["g"]
