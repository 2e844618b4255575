"""The keys of OAUTHBEARER: whose value counts, what stops the start, what unsecured tokens need."""

import re

import pytest

from kraft_wire.keystores.store import Store
from kraft_wire.login.token_refresh import RefreshWindow
from kraft_wire.node.config.node_config import ConfigError, load_config, settings_of_file
from kraft_wire.node.config.security import LinkSecurity
from kraft_wire.node.config.token_settings import (
    SignedTokenSettings,
    TokenSettings,
    UnsecuredTokenSettings,
)
from tests.node.security.test_settings import JAAS, NODE

OWN = "listener.name.secure."
OAUTH = f"{JAAS}.oauthbearer"
HANDLER = f"{OWN}oauthbearer.sasl.server.callback.handler.class"
SIGNED = f"{HANDLER}={OAUTH}.OAuthBearerValidatorCallbackHandler"
URL = "sasl.oauthbearer.jwks.endpoint.url"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
KEYS = "https://idp.example/keys?v=1"
GIVEN = (SIGNED, f"{URL}={KEYS}", f"{ALLOWED}=file:///other,{KEYS}")


def entry(options: str = "") -> str:
    return f"{OWN}oauthbearer.sasl.jaas.config={OAUTH}.OAuthBearerLoginModule required{options};"


def tokens(*lines: str, jaas: str | None = None, environment: str = "") -> TokenSettings:
    """Return the settings of a listener that offers OAUTHBEARER too."""
    text = NODE.replace("PROTOCOL", "SASL_PLAINTEXT")
    own = [f"{OWN}sasl.enabled.mechanisms=PLAIN,OAUTHBEARER", entry() if jaas is None else jaas]
    text += "".join(f"{line}\n" for line in (*own, *lines))
    given = {"KAFKA_OPTS": environment} if environment else {}
    config = load_config(settings_of_file(text, "server.properties"), given)
    assert config.unknown_keys == ()
    sasl = config.security["SECURE"].sasl
    assert sasl is not None
    assert sasl.mechanisms == ("PLAIN", "OAUTHBEARER")
    assert sasl.tokens is not None
    return sasl.tokens


def test_signed_tokens_have_kafkas_defaults() -> None:
    """SEC-OAUTH-07, SEC-OAUTH-11: one hour, 100 ms to 10 s, 30 s, sub and scope."""
    assert tokens(*GIVEN) == SignedTokenSettings(
        KEYS, None, 3_600_000, 100, 10_000, (), None, 30, "sub", "scope"
    )


def test_the_nearest_key_counts() -> None:
    """SEC-OAUTH-12: of the mechanism, then of the listener, then of all."""
    found = tokens(
        *GIVEN,
        "sasl.oauthbearer.expected.issuer=all",
        f"{OWN}sasl.oauthbearer.expected.issuer=listener",
        f"{OWN}oauthbearer.sasl.oauthbearer.expected.issuer=mechanism",
        "sasl.oauthbearer.expected.audience=all",
        f"{OWN}sasl.oauthbearer.expected.audience=x,y",
        "sasl.oauthbearer.clock.skew.seconds=5",
        f"{OWN}oauthbearer.sasl.oauthbearer.sub.claim.name=client",
        f"{OWN}scram-sha-256.sasl.oauthbearer.scope.claim.name=of another mechanism",
    )
    assert isinstance(found, SignedTokenSettings)
    assert (found.issuer, found.audiences, found.skew_seconds) == ("mechanism", ("x", "y"), 5)
    assert (found.subject_claim, found.scope_claim) == ("client", "scope")
    assert found.weakness is None


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("", "issuer"),
        ("sasl.oauthbearer.expected.issuer=i", "audience"),
        ("sasl.oauthbearer.expected.audience=a", "issuer"),
    ],
)
def test_what_is_not_checked_is_told(line: str, named: str) -> None:
    """SEC-OAUTH-12: the start warns."""
    assert f"expected.{named}" in (tokens(*GIVEN, line).weakness or "")


def test_a_login_entry_names_what_an_https_address_is_trusted_by() -> None:
    """SEC-OAUTH-07: as with Kafka, by options of the entry."""
    options = ' ssl.truststore.location="/t.pem" ssl.truststore.type="PEM"'
    found = tokens(*GIVEN, jaas=entry(options))
    assert isinstance(found, SignedTokenSettings)
    assert found.trust_store == Store("/t.pem", is_pem=True)
    with pytest.raises(ConfigError, match="not a type of stores"):
        tokens(*GIVEN, jaas=entry(options.replace("PEM", "XYZ")))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((SIGNED,), "needs the key set"),
        ((SIGNED, f"{URL}="), "needs the key set"),
        ((SIGNED, f"{URL}={KEYS}"), "list it in org.apache"),
        ((SIGNED, f"{URL}={KEYS}", f"{ALLOWED}={KEYS}2"), "list it in org.apache"),
        ((SIGNED, f"{URL}=ftp://h/k", f"{ALLOWED}=ftp://h/k"), "scheme file, http or https"),
        ((SIGNED, f"{URL}=/keys.json", f"{ALLOWED}=/keys.json"), "scheme file, http or https"),
        ((SIGNED, f"{URL}=http:///k", f"{ALLOWED}=http:///k"), "neither a file nor a host"),
        ((SIGNED, f"{URL}=file:", f"{ALLOWED}=file:"), "neither a file nor a host"),
        ((SIGNED, f"{URL}=http://h:x/", f"{ALLOWED}=http://h:x/"), "not a URL"),
        ((f"{HANDLER}=a.B",), "Java classes"),
        ((*GIVEN, "sasl.oauthbearer.jwt.validator.class=a.B"), "Java classes"),
        ((*GIVEN, "sasl.oauthbearer.clock.skew.seconds=-1"), "not be negative"),
        ((*GIVEN, "sasl.oauthbearer.jwks.endpoint.refresh.ms=-1"), "not be negative"),
        ((*GIVEN, "sasl.oauthbearer.sub.claim.name= "), "name a claim"),
        ((*GIVEN, f"{OWN}oauthbearer.sasl.oauthbearer.clock.skew.seconds=x"), "clock.skew"),
    ],
)
def test_a_key_set_that_is_missing_or_not_allowed_stops_the_start(
    lines: tuple[str, ...], reason: str
) -> None:
    """SEC-OAUTH-08: never are tokens taken unsigned instead."""
    with pytest.raises(ConfigError, match=reason):
        tokens(*lines)


def test_the_allow_list_may_be_javas_property() -> None:
    """SEC-OAUTH-08: `-D` in KAFKA_OPTS, as where Kafka runs."""
    found = tokens(*GIVEN[:2], environment=f"-Xmx1g -D{ALLOWED}={KEYS} -Dother=1")
    assert isinstance(found, SignedTokenSettings)
    with pytest.raises(ConfigError, match="list it in"):
        tokens(*GIVEN[:2], environment=f"-D{ALLOWED}=file:///other")


ASK = r"name the class for signed tokens.* or let the login entry ask for unsecured ones"


@pytest.mark.parametrize(
    ("lines", "options", "reason"),
    [
        ((), "", ASK),
        ((), ' username="x" password="y"', ASK),
        ((f"{URL}={KEYS}",), ' unsecuredLoginStringClaim_sub="x"', "has no effect without"),
        ((), ' unsecuredValidatorAllowableClockSkewMs="-1"', "unsecuredValidator"),
        ((), ' unsecuredValidatorAllowableClockSkewMs="long"', "unsecuredValidator"),
    ],
)
def test_unsecured_tokens_are_not_taken_by_accident(
    lines: tuple[str, ...], options: str, reason: str
) -> None:
    """SEC-OAUTH-06, SEC-OAUTH-08: an option, or the class, has to ask for them."""
    with pytest.raises(ConfigError, match=reason):
        tokens(*lines, jaas=entry(options))


def test_unsecured_tokens_have_to_be_asked_for() -> None:
    """SEC-OAUTH-06: and the start warns."""
    by_class = f"{HANDLER}={OAUTH}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    assert tokens(by_class) == UnsecuredTokenSettings()
    by_login = tokens(jaas=entry(' unsecuredLoginStringClaim_sub="x"'))
    assert by_login == UnsecuredTokenSettings()
    assert "anyone" in (by_login.weakness or "")
    options = (
        ' unsecuredValidatorPrincipalClaimName="client" unsecuredValidatorScopeClaimName="roles"'
        ' unsecuredValidatorRequiredScope=" a b " unsecuredValidatorAllowableClockSkewMs="3000"'
    )
    expected = UnsecuredTokenSettings("client", "roles", ("a", "b"), 3000)
    assert tokens(jaas=entry(options)) == expected


BETWEEN_BROKERS = (
    SIGNED,
    f"{URL}={KEYS}",
    "inter.broker.listener.name=SECURE",
    "sasl.mechanism.inter.broker.protocol=OAUTHBEARER",
)
LOGIN = f"{OWN}oauthbearer.sasl.login.callback.handler.class"
LOGIN_CLASS = f"{OAUTH}.OAuthBearerLoginCallbackHandler"
CLIENT = "sasl.oauthbearer.client.credentials.client"


TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
NAMED = ' unsecuredLoginStringClaim_sub="node"'


def links(*lines: str, jaas: str | None = None) -> LinkSecurity:
    """Return the security of links between brokers that log in by tokens."""
    text = NODE.replace("PROTOCOL", "SASL_PLAINTEXT")
    own = [f"{OWN}sasl.enabled.mechanisms=OAUTHBEARER", entry() if jaas is None else jaas]
    text += "".join(f"{line}\n" for line in (*own, *BETWEEN_BROKERS, *lines))
    return load_config(settings_of_file(text, "server.properties"), {}).links["SECURE"]


def test_a_node_takes_its_tokens_from_where_clients_take_theirs() -> None:
    """KIP-768: the class counts for listener and mechanism, other keys for all listeners too."""
    found = links(
        f"{LOGIN}={LOGIN_CLASS}",
        f"{ALLOWED}={KEYS},https://idp.example/token",
        f"{TOKEN_URL}=https://idp.example/for-all",
        f"{OWN}{TOKEN_URL}=https://idp.example/token",
        f"{CLIENT}.id=node",
        f"{OWN}oauthbearer.{CLIENT}.secret=of-node",
        f"{CLIENT}.secret=of-all",
        "sasl.login.refresh.window.factor=0.5",
        "sasl.login.refresh.min.period.seconds=7",
        jaas=entry(' scope="write"'),
    )
    assert found.mechanism == "OAUTHBEARER"
    assert found.tokens is not None
    assert found.tokens.keys == {
        "sasl.login.callback.handler.class": LOGIN_CLASS,
        TOKEN_URL: "https://idp.example/token",
        f"{CLIENT}.id": "node",
        f"{CLIENT}.secret": "of-node",
        "sasl.login.retry.backoff.ms": "100",
        "sasl.login.retry.backoff.max.ms": "10000",
    }
    assert found.tokens.options == {"scope": "write"}
    assert found.tokens.window == RefreshWindow(0.5, 0.05, 7, 300)
    assert "of-node" not in repr(found)


@pytest.mark.parametrize(
    "line",
    [
        "sasl.login.refresh.window.factor=0.49",
        "sasl.login.refresh.window.factor=1.01",
        "sasl.login.refresh.window.jitter=0.26",
        "sasl.login.refresh.min.period.seconds=901",
        "sasl.login.refresh.buffer.seconds=-1",
        "sasl.login.refresh.buffer.seconds=3601",
    ],
)
def test_a_refresh_that_never_comes_or_never_ends_stops_the_start(line: str) -> None:
    """The bounds of Kafka's clients (`SaslConfigs`)."""
    with pytest.raises(ConfigError, match=f"{line.partition('=')[0]}.* it must be from"):
        links(line, f"{ALLOWED}={KEYS}", jaas=entry(NAMED))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((f"{LOGIN}=org.example.Other",), "Java classes cannot be loaded"),
        ((f"{LOGIN}={LOGIN_CLASS}",), "must be an address of file, http or https"),
        ((f"{LOGIN}={LOGIN_CLASS}", f"{TOKEN_URL}=https://other/t"), f"list it in {ALLOWED}"),
        ((f"{LOGIN}={LOGIN_CLASS}", f"{TOKEN_URL}={KEYS}"), f"{CLIENT}.id is missing"),
        ((f"{TOKEN_URL}={KEYS}",), f"{TOKEN_URL} needs"),
        ((), "names no user"),
    ],
)
def test_a_node_that_can_get_no_token_does_not_start(lines: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        links(*lines, f"{ALLOWED}={KEYS}")


def test_no_text_of_the_settings_shows_the_address() -> None:
    """SEC-OAUTH-15: it may have a secret in it."""
    assert "idp.example" not in repr(tokens(*GIVEN))
