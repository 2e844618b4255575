"""The logins of a node's listeners, and the credentials for each mechanism.

Key sets of signed tokens are empty until the host brings keys (`key_sets`).
"""

from collections.abc import Callable, Mapping
from functools import partial

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
from kraft_wire.node.security.scram import ScramServer

__all__ = ["Logins"]

_SECRET_BYTES = 32


class Logins:
    """The logins of one node."""

    def __init__(
        self,
        security: Mapping[str, ListenerSecurity],
        decoder_of: Callable[[str], RequestDecoder],
        image: Callable[[], MetadataImage],
        random_source: RandomSource,
    ) -> None:
        """`decoder_of` returns that of a listener; `image` is the committed metadata."""
        self._sasl = {name: each.sasl for name, each in security.items() if each.sasl is not None}
        self._decoder_of = decoder_of
        self._image = image
        self._random_source = random_source
        self._secret = random_source.below(1 << 8 * _SECRET_BYTES).to_bytes(_SECRET_BYTES, "big")
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

    def _rules_of(self, listener: str) -> LoginRules:
        if listener not in self._rules:
            sasl = self._sasl[listener]
            self._rules[listener] = LoginRules(
                sasl.mechanisms,
                partial(self._new_mechanism, sasl, listener),
                self._decoder_of(listener),
                sasl.session_ms.__getitem__,
                sasl.failed_delay_ms,
            )
        return self._rules[listener]

    def _new_mechanism(self, sasl: SaslSettings, listener: str, name: str) -> Mechanism:
        if name == PLAIN:
            return PlainServer(sasl.plain_accounts)
        if name == OAUTHBEARER:
            return OAuthBearerServer(self._tokens[listener])
        find = partial(self._credential, SCRAM_MECHANISMS[name])
        return ScramServer(name, find, self._random_source, self._secret)

    def _credential(self, mechanism: int, user: str) -> ScramImage | None:
        return self._image().scram.get((user, mechanism))
