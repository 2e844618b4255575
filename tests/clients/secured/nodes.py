"""Nodes with a listener for each protocol, and listeners that a client has to refuse.

Apache's node and ours have the same settings. Beside SSL, MUTUAL, LOGIN and SECURE there are LATE,
whose certificate has expired, FAR, whose certificate is for another host, and NARROW, which offers
PLAIN alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.apache.secured_node import SecuredApache, SecuredNode, sasl_settings
from tests.apache.token_story import SECRET
from tests.certificates import Authority
from tests.node.security.tokens import key_set
from tests.ports import free_port

__all__ = ["LISTENERS", "ManyListeners", "Node", "started"]

LISTENERS: Mapping[str, str] = {
    "SSL": "SSL",
    "MUTUAL": "SSL",
    "LOGIN": "SASL_PLAINTEXT",
    "SECURE": "SASL_SSL",
    "LATE": "SSL",
    "FAR": "SSL",
    "NARROW": "SASL_PLAINTEXT",
}
"""The protocol of each listener; SECURE is the one that `secured_node` has."""
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


class ManyListeners:
    """Addresses of the listeners, and the settings that make them."""

    def __init__(self, directory: Path, more: Mapping[str, str]) -> None:
        """`more` are further settings."""
        self._more = more
        directory.mkdir(parents=True, exist_ok=True)
        self.authority = Authority(directory / "authority")
        self._keys = directory / "keys.json"
        self._keys.write_bytes(key_set())
        self._ports = {name: free_port() for name in LISTENERS if name != "SECURE"}

    @property
    def url_of_keys(self) -> str:
        """Where the keys of tokens are."""
        return f"file:{self._keys}"

    def address(self, listener: str) -> str:
        """``host:port`` of a listener other than SECURE."""
        return f"127.0.0.1:{self._ports[listener]}"

    def settings(self) -> dict[str, str]:
        """Return the settings of all listeners, but for the list of their names."""
        store = str(self.authority.signed("server").store)
        late = str(self.authority.signed("late-server", is_expired=True).store)
        far = str(self.authority.signed("far-server", hosts="DNS:far.example").store)
        settings = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": store,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.trusted),
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.late.ssl.keystore.location": late,
            "listener.name.far.ssl.keystore.location": far,
            "delegation.token.secret.key": SECRET,
            _ALLOWED: self.url_of_keys,
        }
        for listener in ("SECURE", "LOGIN"):
            settings |= self._login(listener)
        narrow = sasl_settings("NARROW")
        narrow["listener.name.narrow.sasl.enabled.mechanisms"] = "PLAIN"
        return {**settings, **narrow, **self._more}

    def _login(self, listener: str) -> dict[str, str]:
        prefix = f"listener.name.{listener.lower()}"
        settings = sasl_settings(listener)
        settings[f"{prefix}.sasl.enabled.mechanisms"] += ",OAUTHBEARER"
        bearer = f"{prefix}.oauthbearer.sasl"
        return settings | {
            f"{bearer}.jaas.config": f"{_OAUTH}.OAuthBearerLoginModule required"
            ' unsecuredLoginStringClaim_sub="x";',
            f"{bearer}.server.callback.handler.class": f"{_OAUTH}"
            ".OAuthBearerValidatorCallbackHandler",
            f"{bearer}.oauthbearer.jwks.endpoint.url": self.url_of_keys,
        }

    def named(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the properties of a node with the listeners added to its list."""
        added = dict(LISTENERS)
        del added["SECURE"]
        lists = {
            "listeners": [f"{name}://{self.address(name)}" for name in added],
            "listener.security.protocol.map": [f"{name}:{kind}" for name, kind in added.items()],
        }
        return {
            **properties,
            **{key: ",".join([properties[key], *words]) for key, words in lists.items()},
        }


class _Apache(SecuredApache):
    def __init__(self, directory: Path, listeners: ManyListeners, machine: dict[str, Any]) -> None:
        super().__init__(directory, LISTENERS["SECURE"], listeners.settings(), **machine)
        self.listeners = listeners

    def properties(self) -> dict[str, str]:
        return self.listeners.named(super().properties())


class _Ours(SecuredNode):
    def __init__(self, directory: Path, listeners: ManyListeners) -> None:
        super().__init__(directory, LISTENERS["SECURE"], listeners.settings())
        self.listeners = listeners

    def properties(self) -> dict[str, str]:
        return self.listeners.named(super().properties())


Node = _Apache | _Ours


@contextmanager
def started(
    directory: Path,
    *,
    is_apache: bool,
    more: Mapping[str, str] = MappingProxyType({}),
    machine: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Node]:
    """Start a node with all listeners and further settings; `machine` is for Apache's Java."""
    listeners = ManyListeners(directory / "listeners", more)
    if not is_apache:
        ours = _Ours(directory / "ours", listeners)
        ours.format()
        with ours:
            yield ours
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"-D{_ALLOWED}={listeners.url_of_keys}")
        apache = _Apache(directory / "apache", listeners, dict(machine))
        apache.__enter__()
    try:
        yield apache
    finally:
        apache.__exit__(None, None, None)
