"""What a formatted directory holds: levels of features, further records, then the identity."""

from typing import Any

from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.node.disks.formatting import DEFAULT_LEVELS, format_directory
from kraft_wire.node.quorum.metadata_opening import bootstrap_records_of
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.meta_properties import MetaProperties, read_meta_properties
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.user_scram_credential_record import UserScramCredentialRecord

OWN = Uuid(bytes(range(16)))


def test_directory_holds_levels_records_and_identity() -> None:
    fs = SimFileSystem()
    credential = UserScramCredentialRecord(
        name="ann", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    format_directory(
        fs,
        "/d",
        cluster_id="c",
        node_id=7,
        directory_id=OWN,
        levels=DEFAULT_LEVELS,
        wall_ms=5,
        records=[VersionedRecord(credential)],
    )
    assert read_meta_properties(fs, "/d") == MetaProperties("c", 7, OWN)
    directory: Any = type("Directory", (), {"path": "/d"})
    *levels, last = (each.record for each in bootstrap_records_of(fs, directory))
    found = {
        each.name: each.feature_level for each in levels if isinstance(each, FeatureLevelRecord)
    }
    assert found == {name: level for name, level in DEFAULT_LEVELS.items() if level}
    assert last == credential
