"""Checks the arguments of the `quorum` verbs: voters, directories, ids. A refusal is one line."""

import os
import re
from typing import Final

from kraft_wire.cli.format.plan import FormatRefused, parse_voters
from kraft_wire.cli.properties_file import UnreadableFile, read_properties
from kraft_wire.cli.quorum.admin import NewVoter, QuorumAdmin
from kraft_wire.cli.random_source import SystemRandomSource
from kraft_wire.model import StorageError, Uuid, random_uuid, uuid_from_text, uuid_to_text
from kraft_wire.node.config.node_config import ConfigError, load_config
from kraft_wire.storage.directory.meta_properties import read_meta_properties
from kraft_wire.storage.os_files import OsFileSystem

__all__ = ["BadInput", "both_forms", "removed_voter", "voter_of"]

_HEXADECIMAL: Final = re.compile(
    r"[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)


class BadInput(Exception):
    """The command line or a file that it names is wrong; the text is one line."""


def voter_of(config: str | None, voter: str | None, listener: str) -> NewVoter:
    """Read a new voter from its configuration and directory, or from id@host:port:directoryId."""
    if (config is None) == (voter is None):
        raise BadInput("give exactly one of --config and --voter")
    if config is not None:
        return _configured(config)
    assert voter is not None
    try:
        parsed = parse_voters(voter)
    except FormatRefused as error:
        raise BadInput(str(error)) from error
    if len(parsed) != 1:
        raise BadInput(f"--voter {voter}: add one voter at a time")
    (new,) = parsed
    return NewVoter(new.node_id, new.directory_id, ((listener.upper(), new.host, new.port),))


def _configured(path: str) -> NewVoter:
    """Read the same as kafka-metadata-quorum: node.id, listeners, and directory.id on the disk."""
    try:
        config = load_config(read_properties(path), os.environ, file_name=path)
    except (UnreadableFile, ConfigError) as error:
        raise BadInput(str(error)) from error
    if not config.controller_listeners:
        raise BadInput(f"{path}: the node has no controller listener")
    directory = config.metadata_dir
    try:
        meta = read_meta_properties(OsFileSystem(), directory)
    except StorageError as error:
        raise BadInput(str(error)) from error
    if meta is None or meta.directory_id is None:
        raise BadInput(f"{directory} has no directory.id in meta.properties: format it first")
    listeners = [
        (each.name, each.advertised_host, each.advertised_port)
        for each in config.controller_listeners
    ]
    return NewVoter(config.node_id, meta.directory_id, tuple(listeners))


def removed_voter(admin: QuorumAdmin, node_id: int, directory_id: str | None) -> Uuid:
    """Return the directory of a voter to remove, by default from the quorum."""
    if directory_id is not None:
        return _uuid(directory_id)
    found = [each for each in admin.describe().voters if each.node_id == node_id]
    if not found:
        raise BadInput(f"controller {node_id} is not a voter")
    known = [each.directory_id for each in found if each.directory_id is not None]
    if not known:
        raise BadInput(f"voter {node_id} has no directory id: the voters of this quorum are static")
    if len(known) > 1:
        raise BadInput(f"voter {node_id} has several directories: give one of {', '.join(known)}")
    return uuid_from_text(known[0])


def both_forms(identity: str | None) -> tuple[str, str]:
    """Return an id in Kafka's form and in the hexadecimal one; None draws a new id."""
    uuid = random_uuid(SystemRandomSource()) if identity is None else _uuid(identity)
    digits = uuid.hex()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return uuid_to_text(uuid), "-".join(parts)


def _uuid(text: str) -> Uuid:
    if _HEXADECIMAL.fullmatch(text):
        return Uuid(bytes.fromhex(text.replace("-", "")))
    try:
        return uuid_from_text(text)
    except ValueError as error:
        raise BadInput(f"{error}, nor a hexadecimal one") from error
