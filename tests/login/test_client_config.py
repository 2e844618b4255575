"""A client's file is read by Kafka's grammars: properties, and one login entry."""

from pathlib import Path

import pytest

from kraft_wire.login.client_config import (
    Credentials,
    UnusableConfig,
    read_client_config,
    security_of,
)
from tests.certificates import Authority

LOGIN = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def read(directory: Path, entry: str) -> Credentials | None:
    file = directory / "client.properties"
    file.write_text(LOGIN + entry + "\n", encoding="utf-8")
    return read_client_config(file)[0].credentials


def test_key_and_chain_of_a_client_may_stand_in_the_settings(tmp_path: Path) -> None:
    """Kafka's `ssl.keystore.key` and `ssl.keystore.certificate.chain` (KIP-651)."""
    signed = Authority(tmp_path).signed("client")
    keys = {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": signed.key.read_text(),
        "ssl.keystore.certificate.chain": signed.chain.read_text(),
    }
    assert security_of(keys).tls is not None
    with pytest.raises(UnusableConfig, match=r"^ssl\.keystore\.keys is not supported"):
        security_of({**keys, "ssl.keystore.keys": "k"})


@pytest.mark.parametrize(
    "entry",
    [
        f'{MODULE} username="ann" password="secret";',
        f"{MODULE} username=ann password=secret;",
        f"{MODULE} \\\n  username='ann' \\\n  password=\"s\\u0065cret\";  ",
    ],
)
def test_a_login_entry_is_read_as_kafka_reads_it(tmp_path: Path, entry: str) -> None:
    assert read(tmp_path, entry) == Credentials("PLAIN", "ann", "secret")


def test_a_login_entry_without_an_end_is_refused_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(UnusableConfig, match="not terminated by semi-colon") as found:
        read(tmp_path, f'{MODULE} username="ann" password="secret"')
    assert "secret" not in str(found.value)
