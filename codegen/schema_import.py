"""Read the schemas out of a release's jars and write them under `schemas/` as bare facts.

The schemas lie inside the jars as `.../message/<Name>.json` and `.../metadata/<Name>.json`. Errors
are in no schema: a Java program of a few lines (`java/ErrorCodes.java`, run in
place by `java`, which has to be on the path) prints them from the release's own enum. Jars come
from Maven: `mvn dependency:copy-dependencies -DoutputDirectory=var/apache/4.3.1` in a folder with a
POM that depends on org.apache.kafka:kafka_2.13:4.3.1.
"""

import hashlib
import json
import re
import subprocess
import zipfile
from collections.abc import Iterable
from pathlib import Path

from codegen.canonical import canonical_text
from codegen.spec import MessageSpec, SchemaError, parse_message

__all__ = ["find_jars", "import_release", "read_jars"]

SCHEMA_PATH = re.compile(r"(?:.*/)?(?:message|metadata)/([A-Za-z0-9]+)\.json")
RAFT_RECORDS = {
    "ControlRecordTypeSchema",
    "EndTxnMarker",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "QuorumStateData",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "VotersRecord",
}


def find_jars(paths: Iterable[Path]) -> list[Path]:
    """Return the jars among the paths; a directory stands for the jars in it."""
    jars: list[Path] = []
    for path in paths:
        jars.extend(sorted(path.glob("*.jar")) if path.is_dir() else [path])
    return jars


def read_jars(jars: Iterable[Path]) -> dict[Path, list[MessageSpec]]:
    """Read the schemas of each jar that has any, in name order."""
    found: dict[Path, list[MessageSpec]] = {}
    for jar in jars:
        try:
            with zipfile.ZipFile(jar) as archive:
                names = sorted(name for name in archive.namelist() if SCHEMA_PATH.fullmatch(name))
                texts = {name: archive.read(name).decode() for name in names}
        except (OSError, zipfile.BadZipFile, UnicodeDecodeError) as error:
            raise SchemaError(str(jar), "(jar)", str(error)) from error
        if texts:
            found[jar] = [parse_message(text, f"{jar.name}!{name}") for name, text in texts.items()]
    return found


def import_release(paths: Iterable[Path], schemas: Path) -> int:
    """Replace the files under `schemas` by the release's; return how many messages there are.

    Everything is read before anything is replaced.
    """
    jars = find_jars(paths)
    found = read_jars(jars)
    if not found:
        raise SchemaError(", ".join(map(str, paths)), "(jars)", "no schema in any of them")
    messages = [message for jar in found for message in found[jar]]
    errors, version = errors_text(read_errors(jars)), version_text(list(found))
    for old in sorted(schemas.glob("*/*.json")):
        old.unlink()
    for message in messages:
        target = schemas / folder_of(message) / f"{message.name}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(canonical_text(message))
    (schemas / "errors.json").write_text(errors)
    (schemas / "VERSION").write_text(version)
    return len(messages)


def folder_of(message: MessageSpec) -> str:
    """Sort a schema into the folder of the part of Kafka that owns it."""
    if message.name in RAFT_RECORDS:
        return "raft"
    if message.name.startswith("Remote") or message.name == "ProducerSnapshot":
        return "storage"
    if message.type.startswith("coordinator"):
        return "coordinator"
    return "metadata" if message.type == "metadata" else "messages"


def version_text(jars: list[Path]) -> str:
    """Name the release and the sha256 of each jar that a schema came from."""
    releases = {jar.stem.rpartition("-")[2] for jar in jars}
    if len(releases) != 1:
        raise SchemaError("(jars)", "version", f"jars of several releases: {sorted(releases)}")
    sums = [f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.name}" for jar in jars]
    return "\n".join([*sorted(releases), *sorted(sums, key=lambda line: line[66:])]) + "\n"


def read_errors(jars: list[Path]) -> list[dict[str, object]]:
    """Ask the release's own enum for its errors: name, code, whether retriable, default message."""
    program = Path(__file__).parent / "java" / "ErrorCodes.java"
    command = ["java", "-cp", ":".join(map(str, jars)), str(program)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise SchemaError("errors.json", "(java)", "java is not on the path") from error
    except subprocess.CalledProcessError as error:
        raise SchemaError("errors.json", "(java)", error.stderr.strip()) from error
    rows = [line.split("\t") for line in answer.stdout.splitlines()]
    errors: list[dict[str, object]] = [
        {"name": name, "code": int(code), "retriable": retriable == "true", "message": message}
        for name, code, retriable, message in rows
    ]
    return sorted(errors, key=lambda error: int(str(error["code"])))


def errors_text(errors: list[dict[str, object]]) -> str:
    """Write the errors as JSON, one per line."""
    return "[\n" + ",\n".join(f"  {json.dumps(error)}" for error in errors) + "\n]\n"
