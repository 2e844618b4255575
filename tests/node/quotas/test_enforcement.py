"""A node measures its clients, tells them their throttle times, and does not read them meanwhile.

Times are computed from KIP-13's formula: a first burst of N bytes with 11 windows of a second is
measured over 10 seconds.
"""

import pytest

from kraft_wire.apis.registry import ROWS, key_of
from kraft_wire.apis.rights import AclOperation as Op
from kraft_wire.node.quotas.charge import Charge
from kraft_wire.node.quotas.exemptions import judge
from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.alter_partition import AlterPartitionRequest
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.fetch import FetchRequest, ReplicaState
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.registry import request_class
from kraft_wire.wire.generated.request_header import RequestHeader
from kraft_wire.wire.generated.vote import VoteRequest
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kraft_wire.wire.message import Message
from tests.node.authorization.guarded_node import (
    ADMINISTRATOR,
    BROKER_LISTENER,
    CLUSTER,
    CLUSTER_NAME,
    CONTROLLER_LISTENER,
    guarded_node,
)
from tests.node.quotas.throttled_node import (
    CONSUMER,
    PRODUCER,
    ThrottledDoor,
)

BYTES, FETCHED, TIME = "producer_byte_rate", "consumer_byte_rate", "request_percentage"


def burst_ms(size_bytes: int, bound: int) -> int:
    """The throttle time of a first burst."""
    return round(size_bytes / bound * 1_000) - 10_000


def test_produce_is_done_then_measured_by_its_size_and_told_the_time() -> None:
    """SEC-QUOTA-08: the records are in the log, although the client must wait."""
    node = ThrottledDoor()
    node.set_quota(BYTES, 1_000)
    answer, size_bytes = node.produce(12_000)
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert answer.throttle_time_ms == burst_ms(size_bytes, 1_000) > 2_000
    assert len(node.fetch().responses[0].partitions[0].records) > 12_000


def test_connection_is_muted_with_the_answer_and_read_again_when_the_time_is_over() -> None:
    """SEC-QUOTA-11: not a millisecond sooner or later."""
    node = ThrottledDoor()
    node.set_quota(BYTES, 1_000)
    answer, _ = node.produce(12_000)
    assert node.muted == {PRODUCER: node.now_ms}
    node.advance(answer.throttle_time_ms - 1)
    assert node.muted
    node.advance(1)
    assert not node.muted


def test_silent_produce_is_throttled_for_its_bytes() -> None:
    """SEC-QUOTA-08: acks 0 has no answer, but its connection is not read."""
    node = ThrottledDoor()
    node.set_quota(BYTES, 1_000)
    answer, size_bytes = node.produce(12_000, acks=0)
    assert answer is None
    node.advance(burst_ms(size_bytes, 1_000) - 1)
    assert PRODUCER in node.muted
    node.advance(1)
    assert not node.muted


def test_other_connections_of_a_throttled_user_go_on_until_their_own_measure() -> None:
    """SEC-QUOTA-12: they share the meter, so the next produce of each is throttled longer."""
    node = ThrottledDoor()
    node.set_quota(BYTES, 1_000, user="ANONYMOUS", client="")
    first, _ = node.produce(12_000)
    assert node.send(MetadataRequest(), 9, connection=7).response.throttle_time_ms == 0
    assert 7 not in node.muted
    second, _ = node.produce(1_000, connection=7)
    assert second.throttle_time_ms > first.throttle_time_ms
    assert set(node.muted) == {PRODUCER, 7}


def test_fetch_above_the_bound_is_empty_and_does_not_count() -> None:
    """SEC-QUOTA-09: a smaller fetch is served at once."""
    node = ThrottledDoor()
    for value_bytes in (9_000, 9_000, 100):
        node.produce(value_bytes)
    node.set_quota(FETCHED, 1_000)
    first = node.fetch(0, max_bytes=9_000)
    assert first.throttle_time_ms == 0
    assert len(first.responses[0].partitions[0].records) > 9_000
    sent_bytes = node.node.broker.bytes_out
    assert sent_bytes == len(first.responses[0].partitions[0].records)
    refused = node.fetch(1)
    assert node.node.broker.bytes_out == sent_bytes
    assert refused.responses == []
    assert 8_000 < refused.throttle_time_ms < 8_500
    assert refused.session_id == 0
    assert CONSUMER in node.muted
    smaller = node.fetch(2, connection=9)
    assert smaller.throttle_time_ms == 0, "what was refused was not counted"
    assert len(smaller.responses[0].partitions[0].records) > 100


def test_fetch_is_cut_to_what_the_windows_allow() -> None:
    """SEC-QUOTA-09: ten seconds of the bound; the rest of the answer costs some milliseconds."""
    node = ThrottledDoor()
    for _ in range(5):
        node.produce(3_000)
    node.set_quota(FETCHED, 1_000)
    refused = node.fetch()
    assert 0 < refused.throttle_time_ms < 100
    node.advance(refused.throttle_time_ms)
    answer = node.fetch()
    assert answer.throttle_time_ms == 0
    assert 9_000 < len(answer.responses[0].partitions[0].records) <= 10_000


def test_fetch_that_is_refused_for_its_time_does_not_count_either() -> None:
    """SEC-QUOTA-09: its bytes were not sent; twice 8,000 would be above the bound."""
    node = ThrottledDoor()
    node.produce(8_000)
    node.set_quota(TIME, 10)
    node.set_quota(FETCHED, 1_000)
    node.send(MetadataRequest(), 9, connection=5)
    node.spend(5, 30.0)
    refused = node.fetch(connection=6)
    assert (refused.responses, refused.throttle_time_ms) == ([], 1_000)
    node.set_quota(TIME, None)
    served = node.fetch(connection=7)
    assert served.throttle_time_ms == 0
    assert len(served.responses[0].partitions[0].records) > 8_000


def test_one_window_allows_one_batch_in_a_fetch() -> None:
    """Kafka's bound is then that of no window: 0 bytes, so that one batch comes."""
    node = ThrottledDoor(**{"quota.window.num": "1"})
    for _ in range(3):
        node.produce(100)
    node.set_quota(FETCHED, 1_000_000)
    answer = node.fetch()
    assert answer.throttle_time_ms == 0
    assert 100 < len(answer.responses[0].partitions[0].records) < 200


def test_client_without_an_id_pays_as_a_user_only() -> None:
    """KIP-55: no quota of client ids is its, not even the default one."""
    node = ThrottledDoor()
    node.set_quota(TIME, 10)
    for user, throttle_ms in (("", 0), ("ANONYMOUS", 1_000)):
        if user:
            node.set_quota(TIME, 10, user=user, client="")
        node.send(MetadataRequest(), 9, connection=5, client_id=None)
        node.spend(5, 30.0)
        answer = node.send(MetadataRequest(), 9, connection=5, client_id=None).response
        assert answer.throttle_time_ms == throttle_ms


def test_throttled_fetch_leaves_its_session_as_it_was() -> None:
    """SEC-QUOTA-09: the next fetch of the session gets what the throttled one did not."""
    node = ThrottledDoor()
    node.produce(9_000)
    made = node.fetch(1, session_epoch=0)
    assert made.session_id > 0
    node.produce(9_000)
    node.set_quota(FETCHED, 500)
    refused = node.fetch(1, session_id=made.session_id, session_epoch=1)
    assert (refused.error_code, refused.session_id) == (0, made.session_id)
    assert (refused.responses, refused.throttle_time_ms > 0) == ([], True)
    node.set_quota(FETCHED, None)
    served = node.fetch(1, session_id=made.session_id, session_epoch=2, connection=9)
    assert len(served.responses[0].partitions[0].records) > 9_000


def test_parked_fetch_is_measured_when_it_is_answered() -> None:
    node = ThrottledDoor()
    node.set_quota(FETCHED, 500)
    assert node.fetch(0, max_wait_ms=5_000) is None
    reply = node._waiting[CONSUMER][0]
    node.produce(9_000)
    assert reply.response.throttle_time_ms > 0
    assert CONSUMER in node.muted


def test_request_time_throttles_for_at_most_a_window() -> None:
    """SEC-QUOTA-10: 100 % of a second over ten is 10 %; any excess is capped."""
    node = ThrottledDoor()
    node.set_quota(TIME, 10)
    node.send(MetadataRequest(), 9, connection=5)
    node.spend(5, 1.01)
    slightly = node.send(MetadataRequest(), 9, connection=5).response
    assert slightly.throttle_time_ms == 100
    assert set(node.muted) == {5}
    node.advance(100)
    node.spend(5, 30.0)
    assert node.send(MetadataRequest(), 9, connection=5).response.throttle_time_ms == 1_000


def test_of_two_throttle_times_the_larger_counts() -> None:
    """SEC-QUOTA-10: bytes ask for two seconds, time for one at most."""
    node = ThrottledDoor()
    node.set_quota(TIME, 10)
    node.set_quota(BYTES, 1_000)
    node.send(MetadataRequest(), 9, connection=5)
    node.spend(5, 30.0)
    answer, size_bytes = node.produce(12_000, connection=5)
    assert answer.throttle_time_ms == burst_ms(size_bytes, 1_000) > 1_000
    other, _ = node.produce(10, connection=6)
    assert other.throttle_time_ms > 1_000


def test_answers_that_are_kept_for_all_clients_tell_each_its_own_time() -> None:
    """SEC-QUOTA-11: ApiVersions and Metadata are encoded once; a throttled client's are not."""
    node = ThrottledDoor()
    node.set_quota(TIME, 10, client="client")
    for request, version in ((ApiVersionsRequest(), 2), (MetadataRequest(), 9)):
        plain = node.send(request, version, connection=5, client_id="other").response
        node.send(request, version, connection=6)
        node.spend(6, 30.0)
        throttled = node.send(request, version, connection=6).response
        assert (plain.throttle_time_ms, throttled.throttle_time_ms) == (0, 1_000)
        throttled.throttle_time_ms = 0
        assert throttled == plain
        assert node.send(request, version, connection=5, client_id="other").response == plain
        node.advance(600_000)


def test_followers_fetch_is_exempt() -> None:
    """SEC-QUOTA-13: neither its bytes nor its time count, nor does it wait."""
    node = ThrottledDoor()
    node.produce(9_000)
    node.set_quota(FETCHED, 1)
    node.set_quota(TIME, 0.001)
    node.fetch(replica_id=2, connection=8)
    node.spend(8, 30.0)
    assert node.fetch(replica_id=2, connection=8).throttle_time_ms == 0
    assert not node.muted
    assert node.fetch().throttle_time_ms > 0, "a consumer is not"


@pytest.mark.parametrize(
    ("fetch", "is_exempt"),
    [
        (FetchRequest(), False),
        (FetchRequest(replica_id=0), True),
        (FetchRequest(replica_id=2), True),
        (FetchRequest(replica_state=ReplicaState()), False),
        (FetchRequest(replica_state=ReplicaState(replica_id=0)), True),
        (FetchRequest(replica_state=ReplicaState(replica_id=2)), True),
    ],
)
def test_follower_names_itself_by_its_id_or_from_version_15_on_by_its_state(
    fetch: FetchRequest, is_exempt: bool
) -> None:
    """KIP-903 moved the field."""

    class NoQuota:
        def took(self, charge: Charge, seconds: float, now_ms: int) -> None:
            raise AssertionError("nothing was done yet")

    charge = Charge("user", "client", 1, RequestHeader(), NoQuota())
    judge(charge, fetch, 100, of_controllers=False)
    assert (charge.is_exempt, charge.is_fetch) == (is_exempt, not is_exempt)


def charged(name: str, *, of_controllers: bool) -> tuple[bool, bool, int | None]:
    """Whether a client's request of an API is exempt, whether its answer is measured; its bytes."""

    class NoQuota:
        def took(self, charge: Charge, seconds: float, now_ms: int) -> None:
            raise AssertionError("nothing was done yet")

    charge = Charge("user", "client", 1, RequestHeader(), NoQuota())
    judge(charge, request_class(key_of(name))(), 100, of_controllers=of_controllers)
    return charge.is_exempt, charge.is_fetch, charge.produced_bytes


def test_every_api_is_charged_as_in_apaches_handlers() -> None:
    """KafkaApis and ControllerApis of 4.3.1: who calls `sendResponseExemptThrottle`.

    The quota of bytes measures Produce requests and the answers of Fetch and ShareFetch.
    """
    between_nodes = {"WriteTxnMarkers", "AlterPartition", "Envelope"}
    quorum = {"Fetch", "FetchSnapshot", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch"}
    quorum |= {"DescribeQuorum", "AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter"}
    for of_controllers in (False, True):
        exempt = between_nodes | (quorum if of_controllers else set())
        fetches = {"ShareFetch"} | (set() if of_controllers else {"Fetch"})
        found = {each.name: charged(each.name, of_controllers=of_controllers) for each in ROWS}
        assert {name for name, charge in found.items() if charge[0]} == exempt
        assert {name for name, charge in found.items() if charge[1]} == fetches
        assert {name for name, charge in found.items() if charge[2] is not None} == {"Produce"}
        assert found["Produce"][2] == 100


MARKER = WritableTxnMarker(topics=[WritableTxnMarkerTopic(name="mine", partition_indexes=[0])])


@pytest.mark.parametrize(
    ("request_", "listener"),
    [
        (WriteTxnMarkersRequest(markers=[MARKER]), BROKER_LISTENER),
        (AlterPartitionRequest(), CONTROLLER_LISTENER),
        (VoteRequest(), CONTROLLER_LISTENER),
    ],
)
def test_refused_call_between_nodes_is_throttled_as_any_other(
    request_: Message, listener: str
) -> None:
    """SEC-API-22: exempt are those who may act for the cluster, not those who pretend to."""
    node = guarded_node("mine")
    entity = [EntityData(entity_type="user", entity_name=None)]
    bound = EntryData(entity=entity, ops=[OpData(key=TIME, value=10.0)])
    node.ask(AlterClientQuotasRequest(entries=[bound]), host=ADMINISTRATOR)
    quotas = node.node.quotas
    assert quotas is not None

    def is_throttled_after_a_long_request(connection: int) -> bool:
        for _ in range(2):
            assert node.ask(request_, listener=listener, connection=connection) is not None
            charge = node._peers[connection].charge
            assert charge is not None
            charge.spend(30.0, node.now_ms)
        return bool(len(quotas.throttled))

    assert is_throttled_after_a_long_request(5)
    node.advance(600_000)
    assert not quotas.throttled
    node.permit(CLUSTER, CLUSTER_NAME, Op.CLUSTER_ACTION)
    assert not is_throttled_after_a_long_request(6)


def test_quotas_take_effect_for_live_connections_and_end_with_the_last_one() -> None:
    """SEC-QUOTA-03, SEC-QUOTA-05: set, changed and removed between requests of one connection."""
    node = ThrottledDoor()
    sizes = [node.produce(9_000)[1]]
    assert not node.muted
    node.set_quota(BYTES, 1_000_000)
    assert node.produce(9_000)[0].throttle_time_ms == 0
    node.set_quota(BYTES, 100)
    answer, size_bytes = node.produce(10)
    assert answer.throttle_time_ms == burst_ms(sizes[0] + size_bytes, 100)
    node.advance(answer.throttle_time_ms)
    node.set_quota(BYTES, None)
    assert node.produce(9_000)[0].throttle_time_ms == 0
    assert not node.muted


def test_closed_connection_is_forgotten_while_it_is_throttled() -> None:
    node = ThrottledDoor()
    node.set_quota(BYTES, 1)
    node.produce(9_000)
    quotas = node.node.quotas
    assert quotas is not None
    assert len(quotas.throttled) == 1
    node.close(PRODUCER)
    assert len(quotas.throttled) == 0
    assert quotas.throttled.deadline_ms() is None


def test_node_without_quotas_measures_nothing() -> None:
    """SEC-QUOTA-03: not even who pays is noted."""
    node = ThrottledDoor()
    node.produce(9_000)
    assert node.node.quotas is None
    assert node.peer(PRODUCER).charge is None
    assert node.node.broker.fetch_quota is None
