"""The settings of a new topic as CreateTopics answers them (KIP-525): each key with its source.

The array is never null: clients iterate over it without a check.
"""

from collections.abc import Mapping
from functools import lru_cache

from kraft_wire.settings.definition import ConfigKey, ConfigSource
from kraft_wire.settings.node_settings import NodeSettings, topic_sources
from kraft_wire.settings.topic import TOPIC_KEYS
from kraft_wire.settings.values import format_value
from kraft_wire.wire.generated.create_topics import CreatableTopicConfigs

__all__ = ["topic_configs"]


def topic_configs(own: Mapping[str, str], settings: NodeSettings) -> list[CreatableTopicConfigs]:
    """Return every topic key, in name order; internal ones only where the topic sets them."""
    inherited = _inherited(settings)
    shown = [key for key in TOPIC_KEYS.values() if not key.internal or key.name in own]
    answers = [
        _answer(key, own, settings) if key.name in own else inherited[key.name] for key in shown
    ]
    assert len(answers) >= 33, len(answers)
    return answers


@lru_cache(maxsize=1)
def _inherited(settings: NodeSettings) -> Mapping[str, CreatableTopicConfigs]:
    """Return the keys as a topic has them that sets none; settings never change.

    A request for thousands of topics would else look up each key as often.
    """
    return {name: _answer(key, {}, settings) for name, key in TOPIC_KEYS.items()}


def _answer(
    key: ConfigKey, own: Mapping[str, str], settings: NodeSettings
) -> CreatableTopicConfigs:
    place = topic_sources(key, own, settings)[0]
    assert key.name in own or place.source is not ConfigSource.TOPIC, key.name
    # The topic's own text is returned unchanged, with blanks, as in Kafka.
    text = own.get(key.name, format_value(place.value))
    assert not key.sensitive, key.name
    return CreatableTopicConfigs(
        name=key.name, value=text, read_only=False, config_source=place.source, is_sensitive=False
    )
