"""Expired delegation tokens are removed by the active controller, a bounded number a step."""

from kraft_wire.controller.token_sweep import TokenSweep
from kraft_wire.metadata.image import DelegationTokenImage, MetadataImage
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.remove_delegation_token_record import RemoveDelegationTokenRecord

INTERVAL_MS, WALL_MS = 5_000, 1_000_000
SETTINGS = {
    "delegation.token.secret.key": "k",
    "delegation.token.expiry.check.interval.ms": str(INTERVAL_MS),
}


def image(**ends_ms: int) -> MetadataImage:
    """Return an image of tokens, by their ends."""
    tokens = {
        name: DelegationTokenImage("User:a", "User:a", (), 0, WALL_MS * 2, at_ms)
        for name, at_ms in ends_ms.items()
    }
    return MetadataImage(delegation_tokens=tokens)


def removed(sweep: TokenSweep, tokens: MetadataImage, now_ms: int) -> list[str]:
    """Return the ids that one step removes."""
    ids = []
    for each in sweep.records(tokens, now_ms, WALL_MS):
        assert isinstance(each.record, RemoveDelegationTokenRecord)
        ids.append(each.record.token_id)
    return ids


def test_tokens_past_their_end_are_removed_every_interval() -> None:
    """SEC-TOKEN-13: one whose end is now stays until the next check."""
    sweep, tokens = TokenSweep(NodeSettings(SETTINGS)), image(a=1, b=WALL_MS, c=WALL_MS - 1)
    sweep.begin(100)
    assert sweep.deadline_ms(tokens) == 100 + INTERVAL_MS
    assert removed(sweep, tokens, 100 + INTERVAL_MS) == ["a", "c"]
    assert sweep.deadline_ms(tokens) == 100 + 2 * INTERVAL_MS


def test_token_past_its_longest_life_is_removed() -> None:
    """SEC-TOKEN-13."""
    token = DelegationTokenImage("User:a", "User:a", (), 0, WALL_MS - 1, WALL_MS + 1)
    sweep = TokenSweep(NodeSettings(SETTINGS))
    sweep.begin(0)
    assert removed(sweep, MetadataImage(delegation_tokens={"a": token}), INTERVAL_MS) == ["a"]


def test_a_step_that_removes_all_is_followed_after_an_interval() -> None:
    for count in (1, 999, 1_000):
        sweep = TokenSweep(NodeSettings(SETTINGS))
        sweep.begin(0)
        ended = image(**{f"t{number}": 1 for number in range(count)})
        assert len(removed(sweep, ended, INTERVAL_MS)) == count
        assert sweep.deadline_ms(ended) == 2 * INTERVAL_MS


def test_a_step_removes_a_thousand_and_the_next_follows_soon() -> None:
    """SEC-TOKEN-13: bounded per pass."""
    ends_ms = {f"t{number:04}": 1 for number in range(2_500)}
    sweep = TokenSweep(NodeSettings(SETTINGS))
    sweep.begin(0)
    now_ms, sizes = INTERVAL_MS, []
    while ends_ms:
        ids = removed(sweep, image(**ends_ms), now_ms)
        sizes.append(len(ids))
        ends_ms = {name: at_ms for name, at_ms in ends_ms.items() if name not in ids}
        deadline_ms = sweep.deadline_ms(image(a=1))
        assert deadline_ms is not None
        now_ms, waited_ms = deadline_ms, deadline_ms - now_ms
        assert (waited_ms < 1_000) is bool(ends_ms)
    assert sizes == [1_000, 1_000, 500]


def test_nothing_is_due_without_tokens_without_key_or_without_leadership() -> None:
    """SEC-TOKEN-13: only the active controller removes tokens."""
    sweep = TokenSweep(NodeSettings(SETTINGS))
    assert sweep.deadline_ms(image(a=1)) is None
    sweep.begin(0)
    assert sweep.deadline_ms(MetadataImage()) is None
    assert sweep.deadline_ms(image(a=1)) == INTERVAL_MS
    sweep.end()
    assert sweep.deadline_ms(image(a=1)) is None
    off = TokenSweep(NodeSettings({}))
    off.begin(0)
    assert off.deadline_ms(image(a=1)) is None
