"""AlterUserScramCredentials: the keys that are kept, derived as RFC 7677 has them."""

from base64 import b64decode, b64encode
from hashlib import pbkdf2_hmac

from kraft_wire.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from tests.controller.cluster import OneNodeCluster


def test_keys_of_a_credential_are_those_of_rfc_7677() -> None:
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    upsertion = ScramCredentialUpsertion(
        name="user",
        mechanism=1,
        iterations=4096,
        salt=salt,
        salted_password=pbkdf2_hmac("sha256", b"pencil", salt, 4096),
    )
    cluster = OneNodeCluster()
    cluster.ask(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)
    stored = cluster.loader.image.scram["user", 1]
    assert b64encode(stored.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert b64encode(stored.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    assert (stored.salt, stored.iterations) == (salt, 4096)
