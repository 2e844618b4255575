"""What the `quorum` verbs are given: a new voter from a file or a word, and ids in both forms."""

from pathlib import Path

import pytest

from kraft_wire.cli.quorum.input import BadInput, both_forms, voter_of
from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.storage.directory.meta_properties import MetaProperties, write_meta_properties
from kraft_wire.storage.os_files import OsFileSystem

OWN = Uuid(bytes(range(16)))
CONFIG = """\
node.id={node_id}
process.roles=controller
controller.quorum.bootstrap.servers=127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=CONTROLLER://127.0.0.1:9093
log.dirs={directory}
"""


def configured(tmp_path: Path, text: str = CONFIG, node_id: int = 3, formatted: bool = True) -> str:
    directory = tmp_path / "data"
    directory.mkdir()
    if formatted:
        meta = MetaProperties(uuid_to_text(Uuid(b"c" * 16)), 3, OWN)
        write_meta_properties(OsFileSystem(), str(directory), meta)
    path = tmp_path / "controller.properties"
    path.write_text(text.format(node_id=3, directory=directory))
    return str(path)


def test_a_new_voter_is_what_its_file_and_its_directory_say(tmp_path: Path) -> None:
    voter = voter_of(configured(tmp_path), None, "IGNORED")
    assert (voter.node_id, voter.directory_id) == (3, OWN)
    assert voter.listeners == (("CONTROLLER", "127.0.0.1", 9093),)


def test_the_environment_beats_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = configured(tmp_path)
    monkeypatch.setenv("KAFKA_NODE_ID", "4")
    assert voter_of(path, None, "CONTROLLER").node_id == 4


def test_a_file_that_is_wrong_is_named(tmp_path: Path) -> None:
    path = configured(tmp_path, CONFIG.replace("process.roles=controller\n", "process.roles=x\n"))
    with pytest.raises(BadInput, match=path):
        voter_of(path, None, "CONTROLLER")
    with pytest.raises(BadInput, match=r"missing\.properties"):
        voter_of(str(tmp_path / "missing.properties"), None, "CONTROLLER")


def test_a_directory_that_was_not_formatted_is_named(tmp_path: Path) -> None:
    path = configured(tmp_path, formatted=False)
    wanted = rf"^{tmp_path}/data has no directory\.id in meta\.properties: format it first$"
    with pytest.raises(BadInput, match=wanted):
        voter_of(path, None, "CONTROLLER")


def test_a_voter_is_given_in_one_way(tmp_path: Path) -> None:
    word = f"5@host:9:{uuid_to_text(OWN)}"
    voter = voter_of(None, word, "controller")
    assert (voter.node_id, voter.directory_id) == (5, OWN)
    assert voter.listeners == (("CONTROLLER", "host", 9),)
    for config, given in ((None, None), ("file", word)):
        with pytest.raises(BadInput, match=r"^give exactly one of --config and --voter$"):
            voter_of(config, given, "CONTROLLER")
    with pytest.raises(BadInput, match=r"add one voter at a time$"):
        voter_of(None, f"{word},6@host:9:{uuid_to_text(OWN)}", "CONTROLLER")
    with pytest.raises(BadInput):
        voter_of(None, "5@host", "CONTROLLER")


def test_an_id_has_two_forms() -> None:
    wanted = ("AAECAwQFBgcICQoLDA0ODw", "00010203-0405-0607-0809-0a0b0c0d0e0f")
    for text in (*wanted, wanted[1].replace("-", ""), wanted[1].upper()):
        assert both_forms(text) == wanted
    drawn = both_forms(None)
    assert both_forms(drawn[0]) == both_forms(drawn[1]) == drawn
    assert both_forms(None) != drawn
    with pytest.raises(BadInput, match=r"nor a hexadecimal one$"):
        both_forms("x")
