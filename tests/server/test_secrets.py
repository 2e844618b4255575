"""Secrets stay secret: everything that a run writes is searched for them.

One node, and one client of every kind of trouble; then its log, its standard output, its data, the
answers of DescribeConfigs and what the commands printed.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.apache.secured_node import ACCOUNTS, SecuredNode, sasl_settings
from tests.certificates import Authority
from tests.cluster_command import kraft_wire
from tests.process import write_properties

KEY_PASSWORD = "password-of-the-key"
WRONG = "a-wrong-password"
SECRETS = (*ACCOUNTS.values(), KEY_PASSWORD, WRONG)


def test_nothing_that_a_run_writes_has_a_secret(tmp_path: Path) -> None:
    """SEC-TLS-13: passwords, keys and login entries, at the level DEBUG."""
    authority = Authority(tmp_path / "authority")
    store = authority.signed("server", password=KEY_PASSWORD)
    key = store.key.read_text()
    settings = {
        **sasl_settings("SECURE"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key.replace("\n", "\\n"),
        "ssl.keystore.certificate.chain": store.chain.read_text().replace("\n", "\\n"),
        "ssl.key.password": KEY_PASSWORD,
    }
    node = SecuredNode(tmp_path / "node", "SASL_SSL", settings)
    node.format()
    node.environment = {**os.environ, "KAFKA_LOG4J_ROOT_LOGLEVEL": "DEBUG"}
    printed = []
    with node:
        file = tmp_path / "client.properties"
        for mechanism, module in (("PLAIN", "plain.Plain"), ("SCRAM-SHA-512", "scram.Scram")):
            for password in (ACCOUNTS["ann"], WRONG):
                entry = f'username="ann" password="{password}"'
                login = f"org.apache.kafka.common.security.{module}LoginModule required {entry};"
                client = {
                    "security.protocol": "SASL_SSL",
                    "sasl.mechanism": mechanism,
                    "sasl.jaas.config": login,
                    "ssl.truststore.type": "PEM",
                    "ssl.truststore.location": str(authority.trusted),
                }
                write_properties(file, client)
                words = ["configs", "describe", "--broker", "1", "--all", "-b", node.secure]
                done = kraft_wire(*words, "--command-config", str(file))
                assert (done.returncode == 0) == (password != WRONG), done.stderr
                printed.append(done.stdout + done.stderr)
    assert "authentication_failed" in node.log.read_text(), "the trouble was logged"
    assert "ssl.key.password" in "".join(printed), "settings were described"
    body = key.splitlines()[2]
    written = [path for path in (tmp_path / "node").rglob("*") if path.is_file()]
    written = [path for path in written if path.name != "server.properties"]
    assert len(written) > 5
    texts = {str(path): path.read_bytes() for path in written}
    texts |= {f"output {number}": text.encode() for number, text in enumerate(printed)}
    for secret in (*SECRETS, body):
        assert secret, "an empty text is everywhere"
        found = [place for place, text in texts.items() if secret.encode() in text]
        assert found == [], secret


def test_a_refused_start_shows_no_secret(tmp_path: Path) -> None:
    """SEC-TLS-13: the line names the key and the place, and hides the value."""
    entry = f'x required user_ann="{WRONG}"'
    node = SecuredNode(
        tmp_path,
        "SASL_PLAINTEXT",
        {**sasl_settings("SECURE"), "listener.name.secure.plain.sasl.jaas.config": entry},
    )
    write_properties(node.properties_file, node.properties())
    done = kraft_wire("server", str(node.properties_file))
    assert done.returncode == 2
    assert "plain.sasl.jaas.config=[hidden]: JAAS config entry not terminated" in done.stderr
    assert WRONG not in done.stderr + done.stdout
