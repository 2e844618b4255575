"""A broker's life against scripted answers: what is said when, and what each answer leads to.

The requests that release 4.3.1 sent are in `registration_and_heartbeats.json`, as its request log
has them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES
from kraft_wire.metadata.image import BROKER_RESOURCE, EMPTY_IMAGE, BrokerImage, MetadataImage
from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.node.config.node_config import load_config, settings_of_file
from kraft_wire.node.registration.broker_lifecycle import (
    BrokerLifecycle,
    BrokerState,
    LifecycleRequest,
)
from kraft_wire.node.registration.cordoned_directories import CordonedDirectories
from kraft_wire.node.registration.incarnation import Registration
from kraft_wire.wire.generated.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from kraft_wire.wire.generated.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.json_form import message_to_json
from tests.broker.groups.harness import CountingChance
from tests.node.test_config import BROKER

OBSERVED = json.loads((Path(__file__).parent / "registration_and_heartbeats.json").read_text())
EPOCH = 336
LEVELLED = MetadataImage(finalized_features={METADATA_VERSION: 30})
OWN_LIFE, OTHER_LIFE = Uuid(b"i" * 16), Uuid(b"o" * 16)
CAUGHT_UP = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True)
UNFENCED = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)
WAIT = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False, should_shut_down=False)
GO = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True, should_shut_down=True)


def config_of(text: str = BROKER, **settings: str) -> Any:
    lines = [f"{key.replace('_', '.')}={value}\n" for key, value in settings.items()]
    return load_config(settings_of_file(text + "".join(lines), "broker.properties"), {})


@dataclass
class Life:
    """A lifecycle with the clock in the test's hand."""

    now_ms: int = 1_000
    offset: int = 335
    image: MetadataImage = LEVELLED
    ids: dict[str, Uuid] = field(default_factory=dict)
    """Log directories by path."""
    lines: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        config = config_of()
        self.lifecycle = BrokerLifecycle(
            101,
            Registration(config, "cluster", OWN_LIFE, [Uuid(b"d" * 16)], -1),
            config.settings,
            CordonedDirectories(101, config.settings, self.ids),
            CountingChance(),
            lambda name, **fields: self.lines.append((name, fields)),
        )
        self.lifecycle.start(self.now_ms)

    def say(self) -> LifecycleRequest:
        assert self.lifecycle.is_due(self.now_ms), self.lifecycle.deadline_ms()
        return self.lifecycle.request(self.offset, self.image, self.now_ms)

    def heartbeat(self) -> BrokerHeartbeatRequest:
        said = self.say()
        assert isinstance(said, BrokerHeartbeatRequest), said
        return said

    def hear(self, answer: Any) -> None:
        self.lifecycle.answered(answer, self.now_ms)

    def fail(self, error: int = ErrorCode.STALE_BROKER_EPOCH) -> None:
        self.hear(BrokerHeartbeatResponse(error_code=error))

    def shown(self, incarnation_id: Uuid, broker_epoch: int) -> None:
        """Apply a registration of this broker's id."""
        node_id = config_of().node_id
        broker = BrokerImage(node_id, broker_epoch, incarnation_id, {}, {})
        self.image = replace(self.image, brokers={node_id: broker})

    def pause_ms(self) -> int:
        """How long until it speaks by itself; time passes until then."""
        began_ms = self.now_ms
        until_ms = self.lifecycle.deadline_ms()
        assert until_ms is not None
        self.now_ms = until_ms
        return until_ms - began_ms

    def registered(self, broker_epoch: int = EPOCH) -> Life:
        assert isinstance(self.say(), BrokerRegistrationRequest)
        self.hear(BrokerRegistrationResponse(broker_epoch=broker_epoch))
        return self

    def running(self) -> Life:
        self.registered()
        self.heartbeat()
        self.hear(CAUGHT_UP)
        self.lifecycle.logs_opened(self.now_ms)
        self.heartbeat()
        self.hear(UNFENCED)
        assert self.lifecycle.state is BrokerState.RUNNING
        return self


def test_registration_says_what_the_configuration_and_the_former_life_say() -> None:
    text = BROKER + "advertised.listeners=PLAINTEXT://h.example:57079\nbroker.rack=r1\n"
    config = config_of(text)
    directories = [Uuid(b"d" * 16), Uuid(b"a" * 16)]
    said = Registration(config, "cluster", Uuid(b"i" * 16), directories, 63).broker_request()
    assert [(each.name, each.host, each.port) for each in said.listeners] == [
        ("PLAINTEXT", "h.example", 57079)
    ]
    assert (said.rack, said.previous_broker_epoch) == ("r1", 63)
    assert said.log_dirs == sorted(directories)
    assert not said.is_migrating_zk_broker


def test_record_of_a_controller_has_its_own_listener_and_no_readiness_for_zookeeper() -> None:
    """ControllerRegistrationManager of 4.3.1, which sends the same as a request."""
    text = (
        "process.roles=controller\ncontroller.quorum.voters=9@h.example:57080\n"
        "listeners=CONTROLLER://127.0.0.1:57080\ncontroller.listener.names=CONTROLLER\n"
        "advertised.listeners=CONTROLLER://h.example:57081\n"
    )
    config = config_of(text, node_id="9")
    record = Registration(config, "c", Uuid(b"i" * 16), [], -1).controller_record()
    assert record.version == 0
    said: Any = message_to_json(record.record, record.version)
    assert [each.pop("name") for each in said["features"]] == list(SUPPORTED_FEATURES)
    assert [tuple(each.values()) for each in said.pop("features")] == [
        (levels.min_level, levels.max_level) for levels in SUPPORTED_FEATURES.values()
    ]
    assert said == {
        "controllerId": 9,
        "incarnationId": uuid_to_text(Uuid(b"i" * 16)),
        "zkMigrationReady": False,
        "endPoints": [
            {"name": "CONTROLLER", "host": "h.example", "port": 57081, "securityProtocol": 0}
        ],
    }


def test_registration_has_the_fields_and_versions_that_release_4_3_1_sends() -> None:
    """All but features, which are those that this node has."""
    theirs = OBSERVED["registration"]
    config = config_of(node_id="101")
    ours: Any = message_to_json(
        Registration(config, "c", Uuid(b"i" * 16), [Uuid(b"d" * 16)], 63).broker_request(),
        theirs["version"],
    )
    assert theirs["version"] == BrokerRegistrationRequest.MAX_VERSION
    assert ours.keys() == theirs["request"].keys()
    for name in ("brokerId", "rack", "isMigratingZkBroker", "previousBrokerEpoch"):
        assert ours[name] == theirs["request"][name]
    ranges = {each["name"]: each for each in theirs["request"]["features"]}
    assert all(each == ranges[each["name"]] for each in ours["features"])
    assert ours["listeners"][0].keys() == theirs["request"]["listeners"][0].keys()


def test_heartbeats_are_those_of_release_4_3_1_from_the_first_to_the_last() -> None:
    life = Life().registered()
    told: list[Any] = []

    def say(offset: int) -> None:
        life.offset = offset
        told.append(message_to_json(life.heartbeat(), 2))

    say(335)
    life.hear(BrokerHeartbeatResponse(is_caught_up=False, is_fenced=True))
    life.pause_ms()
    life.heartbeat()
    life.hear(CAUGHT_UP)
    life.lifecycle.logs_opened(life.now_ms)
    life.lifecycle.published(EMPTY_IMAGE, life.now_ms)
    say(342)
    life.hear(UNFENCED)
    life.lifecycle.begin_stop(life.now_ms)
    say(499)
    life.hear(WAIT)
    life.pause_ms()
    say(499)
    life.hear(GO)
    assert told == OBSERVED["heartbeats"]
    assert life.lifecycle.is_over


def test_broker_catches_up_by_the_hundredth_second_and_then_lives_by_the_interval() -> None:
    life = Life().registered()
    assert life.heartbeat().want_fence
    life.hear(BrokerHeartbeatResponse(is_caught_up=False, is_fenced=True))
    assert life.pause_ms() == 10
    assert life.heartbeat().want_fence
    life.hear(CAUGHT_UP)
    assert life.lifecycle.state is BrokerState.RECOVERY
    life.lifecycle.logs_opened(life.now_ms)
    assert not life.heartbeat().want_fence, "at once"
    life.hear(UNFENCED)
    assert life.lifecycle.has_run
    assert life.pause_ms() == 2_000


def test_logs_that_are_opened_late_keep_the_broker_fenced() -> None:
    life = Life().registered()
    life.heartbeat()
    life.hear(CAUGHT_UP)
    assert life.pause_ms() == 10
    assert life.heartbeat().want_fence
    life.hear(CAUGHT_UP)
    assert life.pause_ms() == 2_000
    assert not life.lifecycle.has_run


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.REQUEST_TIMED_OUT,
    ],
)
def test_refused_registration_is_tried_again_by_doubling_pauses(error: ErrorCode) -> None:
    life = Life()
    pauses = []
    for _ in range(9):
        assert isinstance(life.say(), BrokerRegistrationRequest)
        life.hear(BrokerRegistrationResponse(error_code=error))
        pauses.append(life.pause_ms())
    for expected, pause in zip(
        (100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000), pauses, strict=False
    ):
        assert abs(pause - expected) <= expected * 0.02
    assert {name for name, _ in life.lines} == {"broker_registration_failed"}
    assert life.lines[0][1]["error"] == error.name


def test_broker_whose_former_life_has_a_session_yet_asks_twice_a_second() -> None:
    """Every two seconds, as 4.3.1 asks, it would lose up to two more beside the session."""
    life = Life()
    pauses = []
    for _ in range(6):
        assert isinstance(life.say(), BrokerRegistrationRequest)
        error = ErrorCode.DUPLICATE_BROKER_REGISTRATION
        life.hear(BrokerRegistrationResponse(error_code=error))
        pauses.append(life.pause_ms())
    for expected, pause in zip((100, 200, 400, 500, 500, 500), pauses, strict=True):
        assert abs(pause - expected) <= expected * 0.02


@pytest.mark.parametrize("error", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.NOT_CONTROLLER, 4_711])
def test_failed_heartbeat_is_said_again_and_success_ends_the_doubling(error: int) -> None:
    life = Life().running()
    life.pause_ms()
    life.heartbeat()
    life.fail(error)
    assert 98 <= life.pause_ms() <= 102
    life.heartbeat()
    life.fail(error)
    assert 196 <= life.pause_ms() <= 204
    assert life.heartbeat().broker_epoch == EPOCH
    life.hear(UNFENCED)
    assert life.pause_ms() == 2_000
    life.heartbeat()
    life.fail(error)
    assert 98 <= life.pause_ms() <= 102


def test_pause_after_a_failed_heartbeat_is_never_longer_than_between_two() -> None:
    """A controller that becomes active waits for a session: as long a pause would outlast it."""
    life = Life().running()
    life.pause_ms()
    pauses = []
    for _ in range(12):
        life.heartbeat()
        life.fail(ErrorCode.REQUEST_TIMED_OUT)
        pauses.append(life.pause_ms())
    assert max(pauses) <= 2_000 * 1.02, "of broker.heartbeat.interval.ms"


def test_broker_in_whose_place_another_life_was_registered_registers_again() -> None:
    """A former life's request that arrived last, before any heartbeat could begin a session."""
    life = Life().registered()
    life.shown(OTHER_LIFE, EPOCH + 1)
    life.registered(EPOCH + 2)
    assert life.lines[-1] == (
        "broker_registration_replaced",
        {"broker_epoch": EPOCH, "by_broker_epoch": EPOCH + 1},
    )
    assert life.heartbeat().broker_epoch == EPOCH + 2, "the image is older than that"
    life.hear(CAUGHT_UP)


def test_running_broker_in_whose_place_another_life_was_registered_runs_on() -> None:
    """It is fenced, as after a session that ended, until it knows its new registration."""
    life = Life().running()
    life.pause_ms()
    life.shown(OTHER_LIFE, EPOCH + 1)
    life.registered(EPOCH + 2)
    said = life.heartbeat()
    assert (said.broker_epoch, said.want_fence) == (EPOCH + 2, False)
    life.hear(UNFENCED)
    assert life.lifecycle.state is BrokerState.RUNNING


@pytest.mark.parametrize(
    ("incarnation_id", "broker_epoch"), [(OTHER_LIFE, EPOCH - 1), (OWN_LIFE, EPOCH)]
)
def test_former_lives_and_its_own_registration_replace_nothing(
    incarnation_id: Uuid, broker_epoch: int
) -> None:
    life = Life().running()
    life.pause_ms()
    life.shown(incarnation_id, broker_epoch)
    assert life.heartbeat().broker_epoch == EPOCH


def test_broker_that_stops_leaves_its_place_to_another_life() -> None:
    life = Life().running()
    life.shown(OTHER_LIFE, EPOCH + 1)
    life.lifecycle.begin_stop(life.now_ms)
    assert life.heartbeat().want_shut_down


def test_what_became_urgent_while_an_answer_was_awaited_follows_it_at_once() -> None:
    life = Life().running()
    life.pause_ms()
    life.heartbeat()
    life.lifecycle.begin_stop(life.now_ms)
    assert not life.lifecycle.is_due(life.now_ms)
    life.hear(UNFENCED)
    assert life.heartbeat().want_shut_down


def test_failure_is_never_followed_at_once() -> None:
    life = Life().running()
    life.pause_ms()
    life.heartbeat()
    life.lifecycle.hurry(life.now_ms)
    life.fail()
    assert life.pause_ms() >= 98


def test_stop_waits_for_the_permission_first_50_ms_then_by_the_interval() -> None:
    life = Life().running()
    life.lifecycle.begin_stop(life.now_ms)
    assert life.heartbeat().want_shut_down
    life.hear(WAIT)
    assert life.pause_ms() == 50
    life.heartbeat()
    life.hear(WAIT)
    assert life.pause_ms() == 2_000
    assert life.lifecycle.has_run, "clients are served until the end"
    life.heartbeat()
    life.hear(GO)
    assert life.lifecycle.is_over
    assert life.lifecycle.deadline_ms() is None


def test_stop_goes_on_after_a_session_without_an_answer() -> None:
    life = Life().running()
    life.lifecycle.begin_stop(life.now_ms)
    life.heartbeat()
    assert life.pause_ms() == 9_000
    life.lifecycle.tick(life.now_ms)
    assert life.lifecycle.is_over
    assert life.lines[-1][0] == "controlled_shutdown_given_up"
    life.hear(WAIT)  # late, and of no interest


def test_stop_goes_on_after_five_minutes_of_patience() -> None:
    life = Life().running()
    life.lifecycle.begin_stop(life.now_ms)
    began_ms = life.now_ms
    while not life.lifecycle.is_over:
        life.heartbeat()
        life.hear(WAIT)
        life.pause_ms()
        life.lifecycle.tick(life.now_ms)
    assert life.now_ms - began_ms == 300_000


def test_registration_that_never_succeeds_gives_up_in_time() -> None:
    life = Life()
    while life.lifecycle.given_up is None:
        if life.lifecycle.is_due(life.now_ms):
            life.say()
            life.hear(BrokerRegistrationResponse(error_code=ErrorCode.INVALID_REGISTRATION))
        life.pause_ms()
        life.lifecycle.tick(life.now_ms)
    assert life.now_ms == 61_000
    assert life.lifecycle.is_over


def test_directory_that_fails_is_told_at_once_and_with_every_heartbeat_from_then_on() -> None:
    life = Life().running()
    first, second = Uuid(b"1" * 16), Uuid(b"2" * 16)
    life.lifecycle.directory_failed(first, life.now_ms)
    assert life.heartbeat().offline_log_dirs == [first]
    life.lifecycle.directory_failed(second, life.now_ms)
    life.hear(UNFENCED)
    assert life.heartbeat().offline_log_dirs == [first, second], "at once"
    life.fail()
    life.pause_ms()
    assert life.heartbeat().offline_log_dirs == [first, second]
    life.hear(UNFENCED)
    assert life.pause_ms() == 2_000
    assert life.heartbeat().offline_log_dirs == [first, second]


def test_directory_that_fails_before_the_broker_is_registered_waits_for_its_heartbeat() -> None:
    life = Life()
    life.say()
    life.hear(BrokerRegistrationResponse(error_code=ErrorCode.INVALID_REGISTRATION))
    life.lifecycle.directory_failed(Uuid(b"1" * 16), life.now_ms)
    assert not life.lifecycle.is_due(life.now_ms), "the pause is kept"
    life.pause_ms()
    assert life.registered().heartbeat().offline_log_dirs == [Uuid(b"1" * 16)]


def test_broker_that_cannot_tell_of_a_failed_directory_in_time_gives_up() -> None:
    """What fails while a heartbeat is under way is not known by its answer."""
    life = Life().running()
    life.lifecycle.directory_failed(Uuid(b"1" * 16), life.now_ms)
    life.heartbeat()
    life.now_ms += 10
    life.lifecycle.directory_failed(Uuid(b"2" * 16), life.now_ms)
    life.hear(UNFENCED)
    began_ms = life.now_ms
    for _ in range(100):
        if life.lifecycle.given_up is not None:
            break
        if life.lifecycle.is_due(life.now_ms):
            assert len(life.heartbeat().offline_log_dirs) == 2
            life.fail()
        life.pause_ms()
        life.lifecycle.tick(life.now_ms)
    assert life.lifecycle.given_up is not None
    assert life.now_ms - began_ms == 30_000, "log.dir.failure.timeout.ms"
    assert life.lifecycle.is_over


def test_broker_that_is_told_to_stop_while_it_starts_asks_nobody_and_gives_nothing_up() -> None:
    life = Life()
    life.say()
    life.lifecycle.begin_stop(life.now_ms)
    assert life.lifecycle.is_over
    life.lifecycle.tick(life.now_ms + 100_000)
    assert life.lifecycle.given_up is None


def test_beside_its_active_controller_a_running_broker_has_nothing_more_to_say() -> None:
    life = Life().running()
    life.lifecycle.hurry(life.now_ms)
    life.heartbeat()
    life.lifecycle.answered(UNFENCED, life.now_ms, is_beside=True)
    assert life.lifecycle.deadline_ms() is None
    life.lifecycle.hurry(life.now_ms + 5)
    assert life.lifecycle.deadline_ms() == life.now_ms + 5


FIRST, SECOND = Uuid(b"1" * 16), Uuid(b"2" * 16)


def cordoned(text: str, level: int = 30, told: tuple[Uuid, ...] | None = None) -> MetadataImage:
    """An image with the broker's registration and its dynamic value."""
    broker = BrokerImage(101, EPOCH, OWN_LIFE, {}, {}, log_dirs=(FIRST, SECOND))
    return replace(
        LEVELLED,
        finalized_features={METADATA_VERSION: level},
        brokers={101: replace(broker, cordoned_log_dirs=told)},
        configs={(BROKER_RESOURCE, "101"): {"cordoned.log.dirs": text}},
    )


def test_cordoned_directories_are_reported_at_once_and_with_every_heartbeat() -> None:
    """`BrokerLifecycleManagerTest.testCordonedLogDirs` of release 4.3.1."""
    life = Life(ids={"/a": FIRST, "/b": SECOND}).running()
    told: tuple[Uuid, ...] | None = None
    for text, ids in (
        ("/a", [FIRST]),
        ("/b", [SECOND]),
        ("/a,/b", [FIRST, SECOND]),
        ("*", [FIRST, SECOND]),
        ("", []),
    ):
        life.lifecycle.published(cordoned(text, told=told), life.now_ms)
        if text == "*":
            assert not life.lifecycle.is_due(life.now_ms), "nothing changes"
        else:
            assert life.heartbeat().cordoned_log_dirs == ids
            life.hear(UNFENCED)
        told = tuple(ids)
        life.lifecycle.published(cordoned(text, told=told), life.now_ms)
        assert life.pause_ms() == 2_000, "the controller knows it"
        assert life.heartbeat().cordoned_log_dirs == ids
        life.hear(UNFENCED)


def test_level_without_cordoned_directories_is_not_told_of_them() -> None:
    life = Life(ids={"/a": FIRST, "/b": SECOND}).running()
    life.image = cordoned("/a", level=29)
    life.lifecycle.published(life.image, life.now_ms)
    assert life.pause_ms() == 2_000
    assert life.heartbeat().cordoned_log_dirs is None
    life.hear(UNFENCED)
    life.image = cordoned("/a")
    life.lifecycle.published(life.image, life.now_ms)
    assert life.heartbeat().cordoned_log_dirs == [FIRST]


def test_slow_controller_is_asked_once_for_each_change() -> None:
    life = Life(ids={"/a": FIRST}).running()
    life.lifecycle.published(cordoned("/a"), life.now_ms)
    life.heartbeat()
    life.lifecycle.published(cordoned("/a"), life.now_ms)
    life.hear(UNFENCED)
    assert life.pause_ms() == 2_000
    life.heartbeat()
    life.lifecycle.published(cordoned("/a", told=(FIRST,)), life.now_ms)
    life.lifecycle.published(cordoned("", told=(FIRST,)), life.now_ms)
    life.hear(UNFENCED)
    assert life.heartbeat().cordoned_log_dirs == [], "it changed while an answer was awaited"


def test_broker_beside_its_controller_reports_a_change_and_is_silent_again() -> None:
    life = Life(ids={"/a": FIRST}).running()
    life.pause_ms()
    life.heartbeat()
    life.lifecycle.answered(UNFENCED, life.now_ms, is_beside=True)
    assert life.lifecycle.deadline_ms() is None
    life.lifecycle.published(cordoned("*"), life.now_ms)
    assert life.heartbeat().cordoned_log_dirs == [FIRST]
    life.lifecycle.answered(UNFENCED, life.now_ms, is_beside=True)
    assert life.lifecycle.deadline_ms() is None


def test_broker_beside_the_active_controller_speaks_until_it_runs() -> None:
    """Then nothing is left to be said between two changes."""
    life = Life()
    life.say()
    registered = BrokerRegistrationResponse(broker_epoch=EPOCH)
    life.lifecycle.answered(registered, life.now_ms, is_beside=True)
    assert life.pause_ms() == 0
    assert life.heartbeat().want_fence
    life.lifecycle.answered(CAUGHT_UP, life.now_ms, is_beside=True)
    assert life.pause_ms() > 0
    life.lifecycle.logs_opened(life.now_ms)
    assert not life.heartbeat().want_fence
    life.lifecycle.answered(UNFENCED, life.now_ms, is_beside=True)
    assert life.lifecycle.state is BrokerState.RUNNING
    assert life.lifecycle.deadline_ms() is None


def test_stop_after_a_long_silence_beside_the_controller_waits_a_whole_session() -> None:
    """The session counts from the beginning of the stop: no answer was due before."""
    life = Life().running()
    life.pause_ms()
    life.heartbeat()
    life.lifecycle.answered(UNFENCED, life.now_ms, is_beside=True)
    life.now_ms += 3_600_000
    life.lifecycle.begin_stop(life.now_ms)
    for later_ms, is_over in ((0, False), (8_999, False), (9_000, True)):
        life.lifecycle.tick(life.now_ms + later_ms)
        assert life.lifecycle.is_over == is_over
