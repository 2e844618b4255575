"""AlterUserScramCredentials: the keys that are kept, derived as RFC 7677 has them."""

from base64 import b64decode, b64encode
from hashlib import pbkdf2_hmac

import pytest

from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
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


@pytest.mark.parametrize(("level", "has_scram"), [(10, False), (11, True)])
def test_metadata_versions_before_3_5_iv2_have_no_credentials(level: int, has_scram: bool) -> None:
    """SEC-SCRAM-15: in the words of 4.3.1's class ScramControlManager, and no record."""
    cluster = OneNodeCluster()
    feature = FeatureLevelRecord(name="metadata.version", feature_level=level)
    cluster.commit([VersionedRecord(feature)])
    upsertion = ScramCredentialUpsertion(
        name="ann", mechanism=1, iterations=4096, salt=b"salt", salted_password=bytes(32)
    )
    request = AlterUserScramCredentialsRequest(
        upsertions=[upsertion], deletions=[ScramCredentialDeletion(name="bob", mechanism=1)]
    )
    answer = cluster.ask(request, 0)
    assert isinstance(answer, AlterUserScramCredentialsResponse)
    found = {each.user: (each.error_code, each.error_message) for each in answer.results}
    refused = (35, "The current metadata.version does not support SCRAM")
    missing = (91, "Attempt to delete a user credential that does not exist")
    assert found == {
        "ann": (0, None) if has_scram else refused,
        "bob": missing if has_scram else refused,
    }
    assert [*cluster.loader.image.scram] == [("ann", 1)] * has_scram
