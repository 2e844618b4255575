"""The verbs of `topics` on written answers: tables, JSON, requests and refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kraft_wire.cli.topics import command, replicas
from kraft_wire.cli.topics.admin import alter_configs, describe_configs
from kraft_wire.cli.topics.command import app
from kraft_wire.cli.topics.partitions import DescribedPartition, DescribedTopic
from kraft_wire.client import BrokerConnectionError
from kraft_wire.client.refused import AdminRefused
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated import alter_partition_reassignments as reassignments
from kraft_wire.wire.generated import create_partitions, create_topics, delete_topics, metadata
from kraft_wire.wire.generated import describe_configs as configs
from kraft_wire.wire.generated import incremental_alter_configs as altering
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message
from tests.cli.played_cluster import PlayedCluster

ID, ID_TEXT = Uuid(bytes(range(16))), "AAECAwQFBgcICQoLDA0ODw"
TOPIC, BROKER, GROUP = 2, 4, 32


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedCluster:
    """A cluster that answers as it is told."""
    return PlayedCluster(monkeypatch)


def topic(name: str, *sizes: int, internal: bool = False, error: int = 0) -> Any:
    """A topic as Metadata has it: the number of replicas of each partition."""
    return metadata.MetadataResponseTopic(
        name=name,
        topic_id=ID if sizes else ZERO_UUID,
        is_internal=internal,
        error_code=error,
        partitions=[
            metadata.MetadataResponsePartition(
                partition_index=number, replica_nodes=list(range(size))
            )
            for number, size in enumerate(sizes)
        ],
    )


def test_list_shows_topics_by_name(played: PlayedCluster) -> None:
    found = [topic("b", 2, 3, 3), topic("__x", 1, internal=True), topic("a")]
    played.answers[metadata.MetadataRequest] = metadata.MetadataResponse(topics=found)
    rows = (
        f"topic  partitions  replicas  id\n{{}}a      0           0         -\n"
        f"b      3           2         {ID_TEXT}\n"
    )
    inner = f"__x    1           1         {ID_TEXT}\n"
    assert played.run(app, "list") == (0, rows.format(""), "")
    assert played.run(app, "list --internal") == (0, rows.format(inner), "")
    listed = json.loads(played.run(app, "list --json")[1])
    assert listed[1] == {
        "name": "b",
        "topic_id": ID_TEXT,
        "internal": False,
        "partitions_count": 3,
        "replication_factor": 2,
    }
    request = played.sent[0]
    assert (request.topics, request.allow_auto_topic_creation) == (None, False)


def created(*, error: int = 0, partitions: int = 4) -> Message:
    """The answer to a creation."""
    result = create_topics.CreatableTopicResult(
        name="t",
        topic_id=ID if partitions > 0 else ZERO_UUID,
        error_code=error,
        error_message="why",
        num_partitions=partitions,
        replication_factor=3 if partitions > 0 else -1,
    )
    return create_topics.CreateTopicsResponse(topics=[result])


@pytest.mark.parametrize(
    ("partitions", "text"),
    [
        (1, f"t: 1 partition, id {ID_TEXT}\n"),
        (4, f"t: 4 partitions, id {ID_TEXT}\n"),
        (-1, "t: ? partitions, id -\n"),
    ],
)
def test_created_topic_is_shown_as_far_as_it_is_known(
    played: PlayedCluster, partitions: int, text: str
) -> None:
    played.answers[create_topics.CreateTopicsRequest] = created(partitions=partitions)
    assert played.run(app, "create t") == (0, text, "")
    assert json.loads(played.run(app, "create t --json")[1]) == {
        "name": "t",
        "topic_id": ID_TEXT if partitions > 0 else None,
        "partitions_count": partitions if partitions > 0 else None,
        "replication_factor": 3 if partitions > 0 else None,
    }


def test_creation_names_counts_brokers_and_settings(played: PlayedCluster) -> None:
    request = create_topics.CreateTopicsRequest
    played.answers[request] = created()
    played.run(app, "create t -p 5 -r 2 -c a=b -c c=")
    played.run(app, ["create", "t", "--replicas", "4, 5", "--replicas", "6,4"])
    played.run(app, "create t")
    found = [
        (
            each.topics[0].num_partitions,
            each.topics[0].replication_factor,
            [(one.name, one.value) for one in each.topics[0].configs],
            [(one.partition_index, one.broker_ids) for one in each.topics[0].assignments],
        )
        for each in played.sent
    ]
    assert found == [
        (5, 2, [("a", "b"), ("c", "")], []),
        (-1, -1, [], [(0, [4, 5]), (1, [6, 4])]),
        (-1, -1, [], []),
    ]
    assert {(each.timeout_ms, each.validate_only) for each in played.sent} == {(30_000, False)}


def test_topic_that_exists_is_refused_or_shown(played: PlayedCluster) -> None:
    exists, denied = ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_CONFIG
    answers = [created(error=exists), created(error=exists), created(error=denied)]
    played.answers[create_topics.CreateTopicsRequest] = answers
    found = metadata.MetadataResponse(topics=[topic("t", 2, 2)])
    played.answers[metadata.MetadataRequest] = found
    text = "kraft-wire topics: topic t: TOPIC_ALREADY_EXISTS: why\n"
    assert played.run(app, "create t") == (1, "", text)
    shown = json.loads(played.run(app, "create t --if-not-exists --json")[1])
    assert shown == {
        "name": "t",
        "topic_id": ID_TEXT,
        "partitions_count": 2,
        "replication_factor": 2,
    }
    assert played.run(app, "create t --if-not-exists")[0] == 1
    refused = topic("t", error=ErrorCode.INVALID_TOPIC_EXCEPTION)
    played.answers[metadata.MetadataRequest] = metadata.MetadataResponse(topics=[refused])
    text = "kraft-wire topics: topic t: INVALID_TOPIC_EXCEPTION\n"
    assert played.run(app, "list") == (1, "", text)


def test_refusals_of_a_deletion_are_all_named(played: PlayedCluster) -> None:
    def answer(*codes: int) -> Message:
        results = [
            delete_topics.DeletableTopicResult(name=name, error_code=code)
            for name, code in zip("abc", codes, strict=False)
        ]
        return delete_topics.DeleteTopicsResponse(responses=results)

    missing, denied = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_DELETION_DISABLED
    request = delete_topics.DeleteTopicsRequest
    mixed = (missing, 0, denied)
    played.answers[request] = [answer(0, 0), answer(0, 0), answer(*mixed), answer(*mixed)]
    assert played.run(app, "delete a b") == (0, "", "")
    assert json.loads(played.run(app, "delete a b --json")[1]) == {"deleted": ["a", "b"]}
    first = "kraft-wire topics: topic a: UNKNOWN_TOPIC_OR_PARTITION\n"
    third = "kraft-wire topics: topic c: TOPIC_DELETION_DISABLED\n"
    assert played.run(app, "delete a b c") == (1, "", third + first)
    assert played.run(app, "delete a b c --if-exists") == (1, "", third)
    sent = played.sent[0]
    assert ([each.name for each in sent.topics], sent.topic_names) == (["a", "b"], [])
    played.answers[request] = answer(missing)
    played.versions[request] = 5
    assert played.run(app, "delete a --if-exists") == (0, "", "")
    assert (played.sent[-1].topics, played.sent[-1].topic_names) == ([], ["a"])


def test_partitions_are_added_or_only_checked(played: PlayedCluster) -> None:
    request = create_partitions.CreatePartitionsRequest
    response = create_partitions.CreatePartitionsResponse
    result = create_partitions.CreatePartitionsTopicResult
    done = response(results=[result(name="t")])
    refused = result(name="t", error_code=ErrorCode.INVALID_PARTITIONS, error_message="too few")
    played.answers[request] = [done, done, done, response(results=[refused]), response()]
    line = "add-partitions t -p"
    assert played.run(app, f"{line} 1200") == (0, "t: has 1,200 partitions\n", "")
    assert played.run(app, f"{line} 1 --dry-run")[1] == "t: dry run: would have 1 partition\n"
    shown = played.run(app, f"{line} 3 --dry-run --json --replicas 1,2 --replicas 3,4")[1]
    assert json.loads(shown) == {"name": "t", "partitions_count": 3, "executed": False}
    text = "kraft-wire topics: topic t: INVALID_PARTITIONS: too few\n"
    assert played.run(app, f"{line} 3") == (1, "", text)
    text = "kraft-wire topics: the broker's response lacks topic t\n"
    assert played.run(app, f"{line} 3") == (2, "", text)
    found = [
        (each.topics[0].count, each.validate_only, each.topics[0].assignments)
        for each in played.sent
    ]
    assert found[:2] == [(1200, False, None), (1, True, None)]
    assert [each.broker_ids for each in found[2][2]] == [[1, 2], [3, 4]]


def test_alter_sends_what_is_given(played: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[Any, ...]] = []
    monkeypatch.setattr(command, "add_partitions", lambda _, *given: done.append(given))
    monkeypatch.setattr(command, "alter_configs", lambda _, *given: done.append(given))
    for words in ("-p 4", "-c a=b", "-d x --delete-config y", "-p 4 -c a=b -d x"):
        assert played.run(app, f"alter t {words}") == (0, "t: altered\n", "")
    assert done == [
        ("t", 4),
        ("t", {"a": "b"}, ()),
        ("t", {}, ["x", "y"]),
        ("t", 4),
        ("t", {"a": "b"}, ["x"]),
    ]
    text = "nothing to do: give --partitions, --config or --delete-config"
    assert played.run(app, "alter t") == (2, "", f"kraft-wire topics: {text}\n")


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        (TOPIC, "t", "topic t"),
        (BROKER, "1", "broker 1"),
        (BROKER, "", "all brokers"),
        (GROUP, "g", "group g"),
    ],
)
def test_settings_of_a_resource(played: PlayedCluster, kind: int, name: str, text: str) -> None:
    connection: Any = played
    response, result = configs.DescribeConfigsResponse, configs.DescribeConfigsResult
    entry = configs.DescribeConfigsResourceResult
    entries = [
        entry(name="b", value="1", config_source=5, documentation="what"),
        entry(name="a", value=None, config_source=99),
    ]
    denied = result(error_code=ErrorCode.INVALID_REQUEST, error_message="why")
    played.answers[configs.DescribeConfigsRequest] = [
        response(results=[result(configs=entries)]),
        response(results=[result(configs=entries)]),
        response(results=[denied]),
    ]
    found = describe_configs(connection, name, kind)
    assert [(each.name, each.value, each.source, each.documentation) for each in found] == [
        ("a", None, "source 99", ""),
        ("b", "1", "default", "what"),
    ]
    played.versions[configs.DescribeConfigsRequest] = 2
    describe_configs(connection, name, kind)
    assert [each.include_documentation for each in played.sent] == [True, False]
    with pytest.raises(AdminRefused) as refused:
        describe_configs(connection, name, kind)
    assert str(refused.value) == f"{text}: INVALID_REQUEST: why"
    answer = altering.AlterConfigsResourceResponse(error_code=ErrorCode.INVALID_CONFIG)
    played.answers[altering.IncrementalAlterConfigsRequest] = (
        altering.IncrementalAlterConfigsResponse(responses=[answer])
    )
    with pytest.raises(AdminRefused) as refused:
        alter_configs(connection, name, {"x": "1"}, ["y"], kind)
    assert str(refused.value) == f"{text}: INVALID_CONFIG"
    (resource,) = played.sent[-1].resources
    assert (resource.resource_type, resource.resource_name) == (kind, name)
    changes = [(each.name, each.config_operation, each.value) for each in resource.configs]
    assert changes == [("x", 0, "1"), ("y", 1, None)]


def partition(number: int, leader: int, isr: list[int], **more: Any) -> DescribedPartition:
    """A partition with replicas 1, 2, 3."""
    fields: dict[str, Any] = {"elr": [], "last_known_elr": [], "adding": [], "removing": []}
    fields |= {"offline": [], "error": None} | more
    return DescribedPartition(number, leader, 7, [1, 2, 3], isr, **fields)


def test_partitions_are_described_with_their_troubles(
    played: PlayedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = partition(0, 1, [1, 2, 3])
    late = partition(1, 2, [2, 3], elr=[1], last_known_elr=[4, 5], adding=[], removing=[3])
    gone = partition(2, -1, [], elr=None, last_known_elr=None)
    moving = partition(3, 1, [1, 2], adding=[3], removing=[9])
    unknown = partition(0, 0, [1, 2, 3], adding=None, removing=None, elr=None, last_known_elr=[6])
    both = [
        DescribedTopic("t", ID_TEXT, False, [whole, late, gone, moving]),
        DescribedTopic("u", None, True, [unknown]),
    ]
    asked: list[Any] = []

    def described(connection: object, names: object) -> list[DescribedTopic]:
        asked.append(names)
        return both

    monkeypatch.setattr(replicas, "described", described)
    code, table, said = played.run(app, "describe")
    assert (code, said) == (0, "kraft-wire topics: no controller reports reassignments\n")
    assert table == (
        "topic  partition  leader  epoch  replicas  in sync  ELR  last ELR\n"
        "t      0          1       7      1 2 3     1 2 3    -    -\n"
        "t      1          2       7      1 2 3     2 3      1    4 5       under-replicated,"
        " reassigning -3\n"
        "t      2          none    7      1 2 3     none     ?    ?         offline,"
        " under-replicated\n"
        "t      3          1       7      1 2 3     1 2      -    -         reassigning +3 -9\n"
        "u      0          0       7      1 2 3     1 2 3    ?    6\n"
    )
    both.pop()
    _, out, said = played.run(app, "describe t --under-replicated --json")
    (shown,) = json.loads(out)
    assert (said, [each["partition"] for each in shown["partitions"]]) == ("", [1, 2])
    assert shown["partitions"][0] == {
        "partition": 1,
        "leader": 2,
        "leader_epoch": 7,
        "replicas": [1, 2, 3],
        "isr": [2, 3],
        "elr": [1],
        "last_known_elr": [4, 5],
        "offline": [],
        "error": None,
        "adding": [],
        "removing": [3],
        "under_replicated": True,
    }
    del shown["partitions"]
    assert shown == {
        "name": "t",
        "topic_id": ID_TEXT,
        "partitions_count": 4,
        "replication_factor": 3,
        "internal": False,
    }
    assert asked == [(), ["t"]]


def test_replicas_are_moved_and_moves_cancelled(played: PlayedCluster) -> None:
    response = reassignments.AlterPartitionReassignmentsResponse
    refused = [
        reassignments.ReassignablePartitionResponse(partition_index=number, error_code=code)
        for number, code in ((0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS), (1, 0), (2, 39))
    ]
    result = reassignments.ReassignableTopicResponse(name="t", partitions=refused)
    denied = response(error_code=ErrorCode.INVALID_REQUEST, error_message="why")
    played.answers[reassignments.AlterPartitionReassignmentsRequest] = [
        response(),
        response(),
        response(responses=[result]),
        denied,
    ]
    words = ["reassign", "t", "--to", " 2 = 4, 5", "-t", "0=6", "--cancel", "1"]
    text = "t-2: to have 4 5\nt-0: to have 6\nt-1: cancelled\n"
    assert played.run(app, words) == (0, text, "")
    assert json.loads(played.run(app, [*words, "--json"])[1]) == {
        "name": "t",
        "partitions": {"2": [4, 5], "0": [6], "1": None},
    }
    first = "kraft-wire topics: t-0: NO_REASSIGNMENT_IN_PROGRESS\n"
    last = "kraft-wire topics: t-2: INVALID_REPLICA_ASSIGNMENT\n"
    assert played.run(app, words) == (1, "", last + first)
    text = "kraft-wire topics: topic t: INVALID_REQUEST: why\n"
    assert played.run(app, words) == (1, "", text)
    sent = [(each.partition_index, each.replicas) for each in played.sent[0].topics[0].partitions]
    assert sent == [(2, [4, 5]), (0, [6]), (1, None)]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("reassign t", "nothing to do: give --to or --cancel"),
        ("reassign t --to 0", "'0' is not of the form 0=4,5,6 (partition=broker ids)"),
        ("reassign t --to x=1", "'x=1' is not of the form 0=4,5,6 (partition=broker ids)"),
        ("reassign t --to 2147483648=1", "'2147483648=1' is not of the form 0=4,5,6 (partition=b"),
        ("reassign t --to 0=1,,2", "'1,,2' is not of the form 4,5,6 (broker ids)"),
        ("reassign t --to 0=1 --to 0=2", "partition 0 is given twice"),
        ("reassign t --to 2147483647=1 --cancel 2147483647", "partition 2147483647 is given twice"),
        ("create t --replicas 1 -p 2", "--replicas excludes --partitions and --replication-factor"),
        ("create t --replicas 1 -r 2", "--replicas excludes --partitions and --replication-factor"),
        ("create t -c x", '"x" is not of the form key=value'),
        ("add-partitions t -p 2 --replicas x", "'x' is not of the form 4,5,6 (broker ids)"),
    ],
)
def test_wrong_argument_is_refused_before_a_broker_is_asked(
    played: PlayedCluster, words: str, text: str
) -> None:
    code, out, err = played.run(app, words)
    assert (code, out, played.sent) == (2, "", [])
    assert err.startswith(f"kraft-wire topics: {text}")


def test_broker_that_fails_could_not_be_asked(played: PlayedCluster) -> None:
    played.answers[metadata.MetadataRequest] = BrokerConnectionError("a:1: gone")
    assert played.run(app, "list") == (2, "", "kraft-wire topics: a:1: gone\n")
