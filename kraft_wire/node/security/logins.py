"""The logins of a node's listeners, and the credentials for each mechanism.

Credentials of delegation tokens are derived at the first login by a token and kept (`_KEPT_MAX`),
because each takes some milliseconds. Anybody may cause that once for a token whose id is known.

Key sets of signed tokens are empty until the host brings keys (`key_sets`).
"""

from collections.abc import Callable, Mapping
from functools import partial

from kraft_wire.metadata.delegation_tokens import named_principal, token_password
from kraft_wire.metadata.image import MetadataImage, ScramImage
from kraft_wire.model import RandomSource
from kraft_wire.node.config.security import ListenerSecurity, SaslSettings
from kraft_wire.node.config.token_settings import SignedTokenSettings, UnsecuredTokenSettings
from kraft_wire.node.outputs import Peer
from kraft_wire.node.requests.decoding import RequestDecoder
from kraft_wire.node.security.login import Login, LoginRules
from kraft_wire.node.security.mechanisms import OAUTHBEARER, PLAIN, SCRAM_MECHANISMS, Mechanism
from kraft_wire.node.security.oauth.key_set import KeySet
from kraft_wire.node.security.oauth.server import OAuthBearerServer, TokenCheck
from kraft_wire.node.security.oauth.signed import SignedTokens
from kraft_wire.node.security.oauth.unsecured import UnsecuredTokens
from kraft_wire.node.security.plain import PlainServer
from kraft_wire.node.security.scram import ScramServer, TokenLogin, derived_credential

__all__ = ["Logins"]

_SECRET_BYTES = 32
_KEPT_MAX = 10_000
"""Most credentials of delegation tokens."""
_OUTCOMES = (
    "successful_authentication",
    "failed_authentication",
    "successful_reauthentication",
    "failed_reauthentication",
    "expired_connections_killed_count",
)


class Logins:
    """The logins of one node."""

    def __init__(
        self,
        security: Mapping[str, ListenerSecurity],
        decoder_of: Callable[[str], RequestDecoder],
        image: Callable[[], MetadataImage],
        random_source: RandomSource,
        token_secret: str | None = None,
    ) -> None:
        """`decoder_of` returns that of a listener; `image` is the committed metadata.

        `token_secret` is the key of delegation tokens; None: they are off.
        """
        self._sasl = {name: each.sasl for name, each in security.items() if each.sasl is not None}
        self.counts = {outcome: dict.fromkeys(self._sasl, 0) for outcome in _OUTCOMES}
        """Outcomes of logins by Kafka's name of the metric, then by listener."""
        self._decoder_of = decoder_of
        self._image = image
        self._random_source = random_source
        self._secret = random_source.below(1 << 8 * _SECRET_BYTES).to_bytes(_SECRET_BYTES, "big")
        self._token_secret = token_secret
        self._token_credentials: dict[tuple[str, str], ScramImage] = {}
        """By mechanism and token id."""
        self._rules: dict[str, LoginRules] = {}
        self.key_sets: list[KeySet] = []
        """Those that the host fetches."""
        self._tokens = {
            name: self._token_check(sasl, name)
            for name, sasl in self._sasl.items()
            if sasl.tokens is not None
        }

    def _token_check(self, sasl: SaslSettings, listener: str) -> TokenCheck:
        if isinstance(sasl.tokens, UnsecuredTokenSettings):
            return UnsecuredTokens(sasl.tokens)
        assert isinstance(sasl.tokens, SignedTokenSettings), sasl
        keys = KeySet(sasl.tokens, listener)
        self.key_sets.append(keys)
        return SignedTokens(sasl.tokens, keys)

    def begin(self, peer: Peer) -> None:
        """Start the login of a new connection if its listener requires one."""
        if peer.listener in self._sasl:
            peer.login = Login(self._rules_of(peer.listener), peer)

    def _note(self, listener: str, outcome: str) -> None:
        self.counts[outcome][listener] += 1

    def _rules_of(self, listener: str) -> LoginRules:
        if listener not in self._rules:
            sasl = self._sasl[listener]
            self._rules[listener] = LoginRules(
                sasl.mechanisms,
                partial(self._new_mechanism, sasl, listener),
                self._decoder_of(listener),
                sasl.session_ms.__getitem__,
                sasl.failed_delay_ms,
                partial(self._note, listener),
            )
        return self._rules[listener]

    def _new_mechanism(self, sasl: SaslSettings, listener: str, name: str) -> Mechanism:
        if name == PLAIN:
            return PlainServer(sasl.plain_accounts)
        if name == OAUTHBEARER:
            return OAuthBearerServer(self._tokens[listener])
        find = partial(self._credential, SCRAM_MECHANISMS[name])
        find_token = partial(self._delegation_token, name)
        return ScramServer(name, find, self._random_source, self._secret, find_token)

    def _credential(self, mechanism: int, user: str) -> ScramImage | None:
        return self._image().scram.get((user, mechanism))

    def _delegation_token(self, mechanism: str, token_id: str) -> TokenLogin | None:
        token = self._image().delegation_tokens.get(token_id)
        if token is None or self._token_secret is None:
            return None
        kept, key = self._token_credentials, (mechanism, token_id)
        if key not in kept:
            if len(kept) >= _KEPT_MAX:
                del kept[next(iter(kept))]
            password = token_password(self._token_secret, token_id)
            kept[key] = derived_credential(mechanism, token_id, password, self._secret)
        owner = named_principal(token.owner).name
        return TokenLogin(kept[key], owner, token.expiration_timestamp)
