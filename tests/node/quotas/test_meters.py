"""Meters: their number, and when they are dropped."""

from kraft_wire.node.quotas.levels import PRODUCER, levels_of
from kraft_wire.node.quotas.meters import METERS_MAX, Meters
from kraft_wire.node.quotas.rate_quota import RateQuota
from kraft_wire.node.quotas.windows import THROTTLE_MS_MAX, Windows, throttle_ms

HOUR_MS = 3_600_000
WINDOWS = Windows(11, 1_000)


def meters_by_client_id() -> Meters[list[int]]:
    meters: Meters[list[int]] = Meters(list)
    meters.levels = levels_of({(("client-id", None),): {PRODUCER: 5.0}})[PRODUCER]
    return meters


def test_meters_are_bounded_and_the_longest_unused_goes_first() -> None:
    """SEC-QUOTA-22: a client that draws new ids does not fill the memory."""
    meters = meters_by_client_id()
    oldest, bound = meters.of("u", "0", 0)
    assert bound == 5.0
    for number in range(1, METERS_MAX + 50):
        meters.of("u", str(number), number)
        assert meters.of("u", "0", number)[0] is oldest, "it is in use"
    assert len(meters) == METERS_MAX


def test_meter_without_a_value_for_an_hour_is_dropped() -> None:
    """SEC-QUOTA-22: at the next new meter, as nothing else needs the room."""
    meters = meters_by_client_id()
    unused, _ = meters.of("u", "unused", 0)
    meters.of("u", "used", 1)
    meters.of("u", "other", HOUR_MS)
    assert len(meters) == 3
    meters.of("u", "new", HOUR_MS + 1)
    assert len(meters) == 3
    assert meters.of("u", "unused", HOUR_MS + 1)[0] is not unused


def test_users_share_the_meter_of_a_client_id_and_client_ids_that_of_a_user() -> None:
    """SEC-QUOTA-02: where quotas exist at one level only."""
    by_client = RateQuota(WINDOWS)
    by_client.follow(levels_of({(("client-id", "c"),): {PRODUCER: 10.0}})[PRODUCER])
    by_client.charge("a", "c", 90, 0)
    assert by_client.charge("b", "c", 20, 0) == 1_000
    by_user = RateQuota(WINDOWS)
    by_user.follow(levels_of({(("user", None),): {PRODUCER: 10.0}})[PRODUCER])
    by_user.charge("a", "c", 90, 0)
    assert by_user.charge("b", "c", 90, 0) == 0
    assert by_user.charge("a", "d", 20, 0) == 1_000


def test_quotas_of_addresses_and_of_clients_stand_in_any_order() -> None:
    """SEC-QUOTA-02."""
    address = {(("ip", "1.2.3.4"),): {"connection_creation_rate": 3.0}}
    client = {(("client-id", "c"),): {PRODUCER: 10.0}}
    for quotas in (address | client, client | address):
        quota = RateQuota(WINDOWS)
        quota.follow(levels_of(quotas)[PRODUCER])
        quota.charge("a", "c", 90, 0)
        assert quota.charge("a", "c", 20, 0) > 0


def test_time_of_a_small_bound_is_the_longest_that_an_answer_can_name() -> None:
    """SEC-QUOTA-07: never negative, as an int of Java would be."""
    assert throttle_ms(1e12, 1.0, 10_000) == THROTTLE_MS_MAX == 2**31 - 1
