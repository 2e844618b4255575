"""A broker with cordoned log directories, from its settings to its controllers (KIP-1066).

Broker 101 has two directories, 102 one, and the controller is another node. The rules and words are
those of release 4.3.1; `tests/apache/test_cordoned_directories.py` compares with it.
"""

from __future__ import annotations

import pytest

from kraft_wire.metadata.features import METADATA_VERSION
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.alter_configs import AlterableConfig as ReplacingConfig
from kraft_wire.wire.generated.alter_configs import AlterConfigsRequest
from kraft_wire.wire.generated.alter_configs import AlterConfigsResource as ReplacedResource
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.describe_log_dirs import DescribeLogDirsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.node.quorum import DIRECTORY, NodeQuorum
from tests.node.test_broker_only_nodes import image_of
from tests.node.test_disk_errors import OTHER, TWO_DIRECTORIES
from tests.node.test_log_directories import BESIDE, FIRST, OURS, SECOND, actual, cluster, create

KEY = "cordoned.log.dirs"
SET, DELETE, APPEND, SUBTRACT = range(4)
MISSING = (
    "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "
    "Missing entries : "
)


def told(quorum: NodeQuorum) -> tuple[Uuid, ...] | None:
    """The cordoned directories of broker 101, as the controller has them."""
    found: tuple[Uuid, ...] | None = image_of(quorum).brokers[OURS].cordoned_log_dirs
    return found


def resource(
    value: str | None, operation: int = SET, name: str = str(OURS)
) -> AlterConfigsResource:
    config = AlterableConfig(name=KEY, config_operation=operation, value=value)
    return AlterConfigsResource(resource_type=4, resource_name=name, configs=[config])


def changed(
    quorum: NodeQuorum, *resources: AlterConfigsResource, at: int = OURS
) -> list[tuple[int, str | None]]:
    """Send a change; return each resource's error and its message."""
    request = IncrementalAlterConfigsRequest(resources=list(resources))
    listener = "CONTROLLER" if at == 1 else "PLAINTEXT"
    answer = quorum.ask(at, request, 1, listener=listener)
    quorum.until(lambda: answer.response is not None)
    return [(each.error_code, each.error_message) for each in answer.response.responses]


def described(quorum: NodeQuorum) -> dict[str, bool]:
    """Whether each directory of broker 101 is cordoned, as DescribeLogDirs shows it."""
    request = DescribeLogDirsRequest(topics=None)
    answer = quorum.ask(OURS, request, 5, listener="PLAINTEXT")
    quorum.until(lambda: answer.response is not None)
    return {each.log_dir: each.is_cordoned for each in answer.response.results}


def created(quorum: NodeQuorum, name: str, replicas: int, on: int | None = None) -> int:
    """Create a topic of three partitions, all `on` one broker or placed; return the error."""
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=[on])
        for index in range(3)
        if on is not None
    ]
    topic = CreatableTopic(
        name=name,
        num_partitions=3 if on is None else -1,
        replication_factor=replicas if on is None else -1,
        assignments=assignments,
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    answer = quorum.ask(BESIDE, request, 7, listener="PLAINTEXT")
    quorum.until(lambda: answer.response is not None)
    quorum.level()
    return int(answer.response.topics[0].error_code)


def test_directories_of_the_file_are_reported_and_get_no_replicas() -> None:
    quorum = cluster(cordoned_log_dirs=OTHER)
    assert told(quorum) == (SECOND,)
    assert described(quorum) == {DIRECTORY: False, OTHER: True}
    create(quorum, "t", 4)
    assert actual(quorum, "t") == [FIRST] * 4


def test_change_is_reported_before_the_next_heartbeat_is_due() -> None:
    quorum = cluster()
    assert told(quorum) == ()
    for value, ids in ((OTHER, (SECOND,)), ("*", (FIRST, SECOND)), (DIRECTORY, (FIRST,)), ("", ())):
        assert changed(quorum, resource(value)) == [(ErrorCode.NONE, None)]
        quorum.advance(100)
        assert told(quorum) == ids, value
        assert described(quorum) == {DIRECTORY: FIRST in ids, OTHER: SECOND in ids}


def test_dynamic_value_survives_a_restart_and_counts_instead_of_the_files() -> None:
    quorum = cluster(cordoned_log_dirs="*")
    assert told(quorum) == (FIRST, SECOND)
    assert changed(quorum, resource(DIRECTORY)) == [(ErrorCode.NONE, None)]
    quorum.kill(OURS)
    quorum.start(OURS)
    quorum.until(lambda: quorum.members[OURS].serves_clients)
    quorum.level()
    assert told(quorum) == (FIRST,)
    create(quorum, "t", 4)
    assert actual(quorum, "t") == [SECOND] * 4


def test_broker_without_another_directory_gets_replicas_by_hand_only_in_its_first_one() -> None:
    quorum = cluster(cordoned_log_dirs="*")
    assert created(quorum, "t", 2) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert created(quorum, "t", 1) == ErrorCode.NONE
    placed = image_of(quorum).topics_by_name["t"].partitions.values()
    assert {each.replicas for each in placed} == {(BESIDE,)}
    assert created(quorum, "u", 1, on=OURS) == ErrorCode.NONE
    assert actual(quorum, "u") == [FIRST] * 3


def test_broker_refuses_paths_that_it_does_not_have_and_others_are_changed() -> None:
    quorum = cluster()
    other = AlterConfigsResource(
        resource_type=4,
        resource_name="",
        configs=[AlterableConfig(name="log.cleaner.threads", config_operation=SET, value="2")],
    )
    assert changed(quorum, other, resource("/a,/b")) == [
        (ErrorCode.NONE, None),
        (ErrorCode.INVALID_REQUEST, f"{MISSING}/a, /b"),
    ]
    assert image_of(quorum).config(4, "") == {
        "log.cleaner.threads": "2",
        "min.insync.replicas": "1",
    }
    assert changed(quorum, resource("/a", APPEND)) == [(ErrorCode.INVALID_REQUEST, f"{MISSING}/a")]
    assert changed(quorum, resource(None, DELETE)) == [(ErrorCode.NONE, None)]
    ((error, words),) = changed(quorum, resource(f"*,{OTHER}"))
    assert error == ErrorCode.INVALID_REQUEST
    assert words == f"requirement failed: When {KEY} is set to *, it must not contain other values"
    assert changed(quorum, resource(OTHER, name=str(OURS)), at=BESIDE) == [
        (ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {BESIDE}, but received {OURS}")
    ]
    assert told(quorum) == ()
    nobody = resource("", name="77")
    nobody.configs[0].name = "log.cleaner.threads"
    nobody.configs[0].value = "2"
    assert changed(quorum, nobody, at=BESIDE) == [
        (ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {BESIDE}, but received 77")
    ]


def test_changes_that_no_broker_could_have_are_refused_by_the_controller() -> None:
    """A key twice, no value, an append to what is no list: each of INVALID_REQUEST or _CONFIG."""
    quorum = cluster()
    twice = resource(OTHER)
    twice.configs += resource(DIRECTORY).configs
    no_list = AlterConfigsResource(
        resource_type=4,
        resource_name=str(OURS),
        configs=[AlterableConfig(name="log.cleaner.threads", config_operation=APPEND, value="2")],
    )
    for one in (twice, resource(None), no_list):
        ((error, words),) = changed(quorum, one)
        assert error in (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG), one
        assert "Missing entries" not in (words or "")
    assert told(quorum) == ()
    assert image_of(quorum).config(4, str(OURS)) == {}


@pytest.mark.parametrize(("value", "error"), [("/a", ErrorCode.INVALID_REQUEST), (OTHER, 0)])
def test_older_api_is_checked_too(value: str, error: int) -> None:
    quorum = cluster()
    configs = [ReplacingConfig(name=KEY, value=value)]
    one = ReplacedResource(resource_type=4, resource_name=str(OURS), configs=configs)
    answer = quorum.ask(OURS, AlterConfigsRequest(resources=[one]), 2, listener="PLAINTEXT")
    quorum.until(lambda: answer.response is not None)
    assert answer.response.responses[0].error_code == error


def test_controller_takes_directories_away_but_adds_none() -> None:
    quorum = cluster()
    (refused,) = changed(quorum, resource(OTHER), at=1)
    assert refused[0] == ErrorCode.INVALID_CONFIG
    assert "must be a subset" in str(refused[1])
    assert changed(quorum, resource(TWO_DIRECTORIES)) == [(0, None)]
    assert changed(quorum, resource(DIRECTORY), at=1) == [(0, None)]
    quorum.advance(100)
    assert told(quorum) == (FIRST,)


def test_level_without_cordoned_directories_shows_none_until_it_is_raised() -> None:
    """The static list begins to count with metadata.version 30 (4.3-IV0), without a restart."""
    quorum = NodeQuorum((1,), levels={METADATA_VERSION: 29})
    quorum.elect()
    quorum.add_broker(OURS, log_dirs=TWO_DIRECTORIES, cordoned_log_dirs=OTHER)
    quorum.until(lambda: quorum.members[OURS].serves_clients)
    quorum.level()
    assert (told(quorum), described(quorum)) == (None, {DIRECTORY: False, OTHER: False})
    words = (
        "The cordoned.log.dirs configuration value cannot be set because it requires "
        "metadata.version >= 4.3-IV0"
    )
    assert changed(quorum, resource("")) == [(ErrorCode.INVALID_CONFIG, words)]
    update = FeatureUpdateKey(feature=METADATA_VERSION, max_version_level=30, upgrade_type=1)
    request = UpdateFeaturesRequest(timeout_ms=1_000, feature_updates=[update])
    answer = quorum.ask(OURS, request, 1, listener="PLAINTEXT")
    quorum.until(lambda: answer.response is not None)
    assert answer.response.error_code == ErrorCode.NONE
    quorum.advance(100)
    assert (told(quorum), described(quorum)) == ((SECOND,), {DIRECTORY: False, OTHER: True})


def test_directory_that_left_log_dirs_is_passed_over_until_the_value_is_changed() -> None:
    """4.3.1 then ignores all dynamic values of the broker; both refuse each change beside it."""
    quorum = cluster()
    assert changed(quorum, resource(TWO_DIRECTORIES)) == [(0, None)]
    quorum.advance(100)
    assert told(quorum) == (FIRST, SECOND)
    quorum.kill(OURS)
    quorum.start(OURS, log_dirs=DIRECTORY)
    quorum.until(lambda: quorum.members[OURS].serves_clients)
    quorum.level()
    assert (told(quorum), described(quorum)) == ((FIRST,), {DIRECTORY: True})
    config = AlterableConfig(name="log.cleaner.threads", config_operation=SET, value="2")
    beside = AlterConfigsResource(resource_type=4, resource_name=str(OURS), configs=[config])
    assert changed(quorum, beside) == [(ErrorCode.INVALID_REQUEST, f"{MISSING}{OTHER}")]
    assert changed(quorum, resource(OTHER, SUBTRACT)) == [(0, None)]
    assert changed(quorum, beside) == [(0, None)]
