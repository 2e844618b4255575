"""A topic's settings as text, read as Kafka's ConfigDef reads them."""

from dataclasses import Field, fields

import pytest

from kraft_wire.settings.topic import TOPIC_KEYS
from kraft_wire.storage.log_config import LogConfig


@pytest.mark.parametrize("setting", [each for each in fields(LogConfig) if each.name != "texts"])
def test_default_is_that_of_the_key(setting: Field[object]) -> None:
    """The table of keys is compared with Apache's own."""
    default = TOPIC_KEYS[setting.name.replace("_", ".")].default
    assert setting.default == (tuple(default) if isinstance(default, list) else default)


@pytest.mark.parametrize(
    ("text", "policies"),
    [
        ("compact", ("compact",)),
        (" compact , delete ", ("compact", "delete")),
        ("delete,", ("delete",)),
        ("", ()),
        (" ", ()),
    ],
)
def test_cleanup_policy_is_a_list_without_empty_parts(text: str, policies: tuple[str, ...]) -> None:
    config = LogConfig.from_mapping({"cleanup.policy": text})
    assert config.cleanup_policy == policies
    assert (config.is_compacted, config.is_deleted) == (
        "compact" in policies,
        "delete" in policies,
    )


@pytest.mark.parametrize(("text", "value"), [("true", True), (" FALSE ", False)])
def test_booleans_are_words_of_any_case(text: str, value: bool) -> None:
    found = LogConfig.from_mapping({"unclean.leader.election.enable": text})
    assert found.unclean_leader_election_enable is value


def test_what_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(ValueError, match="'yes' is neither true nor false"):
        LogConfig.from_mapping({"unclean.leader.election.enable": "yes"})


@pytest.mark.parametrize(
    ("texts", "segment_bytes"),
    [
        ({"internal.segment.bytes": "2000"}, 2_000),
        ({"internal.segment.bytes": "2000", "segment.bytes": "1048576"}, 2_000),
        ({"segment.bytes": "1048576"}, 1_048_576),
        ({"internal.segment.bytes": "-5"}, 1),
    ],
)
def test_internal_size_of_segments_replaces_the_usual_one(
    texts: dict[str, str], segment_bytes: int
) -> None:
    """`LogConfig.segmentSize` of 4.3.1; its own tests of Kafka Streams depend on it."""
    assert LogConfig.from_mapping(texts).segment_bytes == segment_bytes
