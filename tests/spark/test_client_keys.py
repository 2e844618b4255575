"""Every key that Kafka's clients have is known: it is taken, or refused with the reason.

`client_keys.txt` has `configNames()` of 4.3.1's ConsumerConfig and ProducerConfig.
"""

from pathlib import Path

import pytest

from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftwire.wire_keys import KafkaKeys

NAMES = (Path(__file__).parent / "client_keys.txt").read_text().split()
FOREIGN = ("internal.", "share.")
"""Keys of Kafka's own tests, and those of share consumers, which read otherwise."""
REFUSED = {
    "auto.offset.reset",
    "enable.auto.commit",
    "interceptor.classes",
    "key.deserializer",
    "key.serializer",
    "partitioner.class",
    "partitioner.ignore.keys",
    "transaction.two.phase.commit.enable",
    "transactional.id",
    "value.deserializer",
    "value.serializer",
}


@pytest.mark.parametrize("name", [each for each in NAMES if not each.startswith(FOREIGN)])
def test_key_of_kafkas_clients_is_taken_or_refused_with_a_reason(name: str) -> None:
    if name not in REFUSED:
        KafkaKeys({name: "1"})
        return
    with pytest.raises(PipelineError, match=r"is not supported[:,]"):
        KafkaKeys({name: "1"})


@pytest.mark.parametrize("name", [each for each in NAMES if each.startswith(FOREIGN)])
def test_key_of_other_clients_does_not_exist(name: str) -> None:
    with pytest.raises(PipelineError, match=f"^option 'kafka.{name}' does not exist; "):
        KafkaKeys({name: "1"})


@pytest.mark.parametrize("name", ["plaintext", " PLAINTEXT "])
def test_plaintext_needs_no_other_key(name: str) -> None:
    keys = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": name, "ssl.protocol": "TLS"}
    assert KafkaKeys(keys).cluster().security_keys == ()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"security.protocol": "TLS"}, "=TLS: security.protocol=TLS: use PLAINTEXT, SSL, "),
        ({"security.protocol": "SASL_SSL"}, "=SASL_SSL: sasl.mechanism=GSSAPI is not supported"),
        ({"security.protocol": "ssl", "ssl.protocol": "TLS"}, "=SSL: ssl.protocol is not supp"),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "/nowhere"},
            "=SSL: a store cannot be used: /nowhere: ",
        ),
    ],
)
def test_security_that_is_not_supported_is_refused_on_the_driver(
    keys: dict[str, str], words: str
) -> None:
    with pytest.raises(PipelineError, match=f"^option kafka.security.protocol{words}"):
        KafkaKeys({"bootstrap.servers": "127.0.0.1:1", **keys}).cluster()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("fetch.max.byte", "did you mean kafka.fetch.max.bytes?"),
        ("xyzzy", "Kafka's clients have no such key"),
    ],
)
def test_key_that_is_misspelt_is_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(PipelineError) as refusal:
        KafkaKeys({name: "1"})
    assert str(refusal.value) == f"option 'kafka.{name}' does not exist; {hint}"
