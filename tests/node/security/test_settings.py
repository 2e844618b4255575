"""The keys of secured listeners: whose value counts, and every wrong one named in one line."""

import pytest

from kraft_wire.node.config.node_config import (
    ConfigError,
    NodeConfig,
    load_config,
    settings_of_file,
)

JAAS = "org.apache.kafka.common.security"
NODE = f"""\
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://:1,CONTROLLER://:2,SECURE://:3
advertised.listeners=PLAINTEXT://h:1,SECURE://h:3
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:PROTOCOL
controller.quorum.voters=1@h:2
log.dirs=/a
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.secure.plain.sasl.jaas.config={JAAS}.plain.PlainLoginModule required user_a="secret1";
listener.name.secure.scram-sha-256.sasl.jaas.config={JAAS}.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.location=/store.pem
"""


def loaded(protocol: str, *lines: str) -> NodeConfig:
    text = NODE.replace("PROTOCOL", protocol) + "".join(f"{line}\n" for line in lines)
    return load_config(settings_of_file(text, "server.properties"), {})


def test_a_listener_in_plain_text_asks_for_nothing() -> None:
    """SEC-PLAIN-05: accounts belong to the listener that is named."""
    config = loaded("SASL_PLAINTEXT")
    assert [*config.security] == ["SECURE"]
    sasl = config.security["SECURE"].sasl
    assert sasl is not None
    assert sasl.mechanisms == ("PLAIN", "SCRAM-SHA-256")
    assert sasl.plain_accounts == {"a": "secret1"}
    assert sasl.session_ms == {"PLAIN": 0, "SCRAM-SHA-256": 0}
    assert config.security["SECURE"].tls is None
    assert config.links == {}


def test_the_listeners_own_key_beats_the_key_of_all() -> None:
    """SEC-TLS-02, SEC-SASL-20, SEC-SASL-22: with the prefix, also for one mechanism."""
    config = loaded(
        "SASL_SSL",
        "listener.name.secure.sasl.enabled.mechanisms=PLAIN",
        "listener.name.secure.ssl.keystore.location=/own.pem",
        "listener.name.other.ssl.keystore.location=/other.pem",
        "connections.max.reauth.ms=5000",
        "listener.name.secure.plain.connections.max.reauth.ms=7000",
    )
    security = config.security["SECURE"]
    assert security.sasl is not None
    assert security.tls is not None
    assert security.sasl.mechanisms == ("PLAIN",)
    assert security.sasl.session_ms == {"PLAIN": 7000}
    assert security.tls.key_store is not None
    assert security.tls.key_store.location == "/own.pem"


def test_under_sasl_only_the_listeners_own_wish_for_certificates_counts() -> None:
    """SEC-TLS-06: a global one is reported as without effect."""
    config = loaded("SASL_SSL", "ssl.client.auth=required")
    tls = config.security["SECURE"].tls
    assert tls is not None
    assert tls.client_auth == "none"
    assert config.unknown_keys == ("ssl.client.auth",)
    own = loaded("SASL_SSL", "listener.name.secure.ssl.client.auth=required")
    tls = own.security["SECURE"].tls
    assert tls is not None
    assert tls.client_auth == "required"
    assert loaded("SSL", "ssl.client.auth=required").unknown_keys == ()


def test_trusted_certificates_may_stand_in_the_settings() -> None:
    """KIP-651: ssl.truststore.certificates, as PEM text."""
    text = "-----BEGIN CERTIFICATE-----x"
    lines = ("ssl.truststore.type=PEM", f"ssl.truststore.certificates={text}")
    tls = loaded("SSL", *lines).security["SECURE"].tls
    assert tls is not None
    assert tls.trust_store is not None
    assert (tls.trust_store.is_pem, tls.trust_store.location) == (True, None)
    assert text in str(tls.trust_store.text)


def test_login_entries_without_a_listener_are_without_effect() -> None:
    """SEC-PLAIN-06: with neither prefix, or with the mechanism alone."""
    entry = f"sasl.jaas.config={JAAS}.plain.PlainLoginModule required;"
    config = loaded("SASL_PLAINTEXT", entry, f"plain.{entry}")
    assert config.unknown_keys == ("plain.sasl.jaas.config", "sasl.jaas.config")


@pytest.mark.parametrize(
    ("protocol", "line", "message"),
    [
        ("SASL", "", "SASL is not a security protocol"),
        (
            "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms=GSSAPI",
            "sasl.enabled.mechanisms=GSSAPI: listener SECURE cannot offer GSSAPI; supported: PLAIN",
        ),
        (
            "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
            "listener.name.secure.scram-sha-512.sasl.jaas.config is not set: the mechanism",
        ),
        (
            "SASL_PLAINTEXT",
            "listener.name.secure.plain.sasl.jaas.config=m required user_a=hunter2",
            "plain.sasl.jaas.config=[hidden]: JAAS config entry not terminated by semi-colon",
        ),
        (
            "SASL_PLAINTEXT",
            "listener.name.secure.plain.sasl.jaas.config="
            "com.sun.security.auth.module.JndiLoginModule required a=hunter2;",
            "[hidden]: the login module of PLAIN is org.apache.kafka",
        ),
        (
            "SASL_PLAINTEXT",
            "connection.failed.authentication.delay.ms=600000",
            "should always be less than connections.max.idle.ms=600000",
        ),
        (
            "SASL_PLAINTEXT",
            "listener.name.secure.plain.sasl.server.callback.handler.class=x",
            "Java classes cannot be loaded",
        ),
        ("SASL_PLAINTEXT", "sasl.enabled.mechanisms=", "SECURE needs one of PLAIN, SCRAM-SHA-256"),
        (
            "SASL_PLAINTEXT",
            "sasl.server.callback.handler.class=x",
            "sasl.server.callback.handler.class=x: Java classes cannot be loaded",
        ),
        ("SSL", "ssl.engine.factory.class=x", "x: Java classes cannot be loaded"),
        ("SASL_SSL", "sasl.login.class=x", "x: Java classes cannot be loaded"),
        ("SASL_PLAINTEXT", "principal.builder.class=com.acme.B", "only DefaultKafkaPrincipal"),
        ("PLAINTEXT", "principal.builder.class=com.acme.B", "only DefaultKafkaPrincipal"),
        (
            "PLAINTEXT",
            "listener.name.secure.principal.builder.class=com.acme.B",
            "listener.name.secure.principal.builder.class=com.acme.B: only DefaultKafkaPrincipal",
        ),
        ("SASL_PLAINTEXT", "inter.broker.listener.name=SECURE", "inter.broker.protocol is not set"),
        (
            "SASL_PLAINTEXT",
            "inter.broker.listener.name=SECURE\nsasl.mechanism.inter.broker.protocol=SCRAM-SHA-512",
            "SECURE cannot be dialled so; use one of PLAIN, SCRAM-SHA-256",
        ),
        (
            "SASL_PLAINTEXT",
            "inter.broker.listener.name=SECURE\nsasl.mechanism.inter.broker.protocol=PLAIN",
            "this node needs a username and a password of its own",
        ),
        ("SSL", "ssl.client.auth=Required", "String must be one of: required, requested, none"),
        ("SSL", "listener.name.secure.ssl.client.auth=yes", "String must be one of"),
        ("SSL", "ssl.keystore.location=", "listener SECURE needs a key and a certificate"),
        ("SSL", "ssl.keystore.type=BCFKS", "it is none of JKS, PKCS12, PEM"),
        ("SSL", "ssl.keystore.type=pem", "it is none of JKS, PKCS12, PEM"),
        ("SSL", "ssl.keystore.type=JKS", "a JKS or PKCS12 key store needs its password"),
        ("SSL", "ssl.keystore.type=pkcs12", "a JKS or PKCS12 key store needs its password"),
        (
            "SSL",
            "ssl.keystore.location=\nssl.keystore.type=JKS\nssl.keystore.key=k\n"
            "ssl.keystore.certificate.chain=c",
            "keys and certificates in the settings are PEM",
        ),
        (
            "SSL",
            "ssl.keystore.location=\nssl.keystore.password=hunter2\nssl.keystore.key=k\n"
            "ssl.keystore.certificate.chain=c",
            "[hidden]: there is no ssl.keystore.location that it belongs to",
        ),
        (
            "SSL",
            "ssl.truststore.password=hunter2",
            "[hidden]: there is no ssl.truststore.location that it belongs to",
        ),
        ("SSL", "ssl.keystore.password=hunter2", "[hidden]: a PEM store has no password"),
        ("SSL", "ssl.keystore.key=hunter2", "the key is given twice"),
        ("SSL", "ssl.keystore.location=\nssl.keystore.key=hunter2", "the key has no certificate"),
        (
            "SSL",
            "ssl.truststore.type=PEM\nssl.truststore.location=/t\nssl.truststore.certificates=x",
            "certificates are given twice",
        ),
        (
            "SSL",
            "ssl.truststore.type=PEM\nssl.truststore.location=/t\nssl.truststore.password=hunter2",
            "[hidden]: a PEM store has no password",
        ),
        ("SSL", "ssl.truststore.type=x\nssl.truststore.location=/t", "it is none of JKS, PKCS12"),
        ("SSL", "ssl.enabled.protocols=TLSv1.1,TLSv1.2", "TLSv1.1 is not secure"),
        ("SSL", "ssl.enabled.protocols=TLSv1.4", "TLSv1.4 is not a version of TLS"),
        ("SSL", "ssl.principal.mapping.rules=RULE:x", "neither DEFAULT nor RULE:pattern/name/"),
    ],
)
def test_a_wrong_value_stops_the_start_with_one_line(
    protocol: str, line: str, message: str
) -> None:
    """SEC-TLS-05, SEC-TLS-11, SEC-TLS-13, SEC-TLS-16, SEC-SASL-15, SEC-SASL-20, SEC-PLAIN-08,
    SEC-ENV-01: secrets are hidden.
    """
    with pytest.raises(ConfigError) as refusal:
        loaded(protocol, line)
    assert message in str(refusal.value)
    assert "hunter2" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_checked_configuration_prints_no_secret() -> None:
    """SEC-TLS-13: whatever prints it."""
    config = loaded("SASL_SSL", "ssl.key.password=hunter2")
    assert "secret1" not in repr(config)
    assert "hunter2" not in repr(config)
    assert "secret1" not in repr(config.security)
    assert "hunter2" not in repr(config.security)
