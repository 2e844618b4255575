"""Random questions to an authorizer over random entries, as lines; and our answers to them.

The lines are those that `AuthorizerJudge.java` reads: the same text is put to Apache's class. Ours
is asked the way a node does it: entries are records that a loader replays, and the authorizer
follows by deltas.
"""

from collections.abc import Iterator, Sequence
from random import Random

from kraft_wire.apis.rights import AclOperation, ResourceType
from kraft_wire.metadata.authorizer.principal import host_text, super_users
from kraft_wire.metadata.authorizer.standard_authorizer import (
    AuthorizerNotReady,
    StandardAuthorizer,
)
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.model import Principal, Uuid
from kraft_wire.wire.generated.access_control_entry_record import AccessControlEntryRecord
from kraft_wire.wire.generated.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from kraft_wire.wire.message import Message

NAMES = ("a", "ab", "abc", "abd", "b", "h", "hardcode", "hardcodes", "*", "ü", "üb")
RARE_NAMES = ("**", "*a", "!!foo", "!!fx", "(", "\uffee", "\U0001f600", "a" * 240, "kafka-cluster")
TYPES = (2, 2, 2, 2, 3, 3, 4, 5, 6, 7)
PRINCIPALS = ("User:ann", "User:bob", "User:*", "Group:dev", "user:ann", "User:x:y", "Group:*")
ASKERS = (
    *(("User", "ann"), ("User", "ann"), ("User", "bob"), ("Group", "dev"), ("User", "cid")),
    *(("user", "ann"), ("User", "x:y"), ("User:x", "y"), ("User", "root"), ("Group", "root")),
)
HOSTS = ("*", "*", "*", "10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1", "::1", "10.0.0.0/8")
ADDRESSES = ("10.0.0.1", "10.0.0.1", "10.0.0.2", "::1", "::ffff:10.0.0.1", "fe80::a:1")
OPERATIONS = (2, 2, *range(3, 16), 3, 4, 8, 8, 11)
SUPER_USERS = ("", "User:root", "User:root; User:CN=a,O=b;;", " Group:root ", "User:*", "user:root")


def story(random: Random, entries: int, questions: int) -> Iterator[str]:
    """The lines of one authorizer: some entries at once, questions, and changes between them."""
    yield f"new\t{random.choice(SUPER_USERS)}\t{random.choice(('true', 'false', 'TRUE', 'yes'))}"
    known: dict[int, str] = {}
    for number in range(entries):
        yield from _entry(random, number, known)
    yield "load"
    for number in range(entries, entries + questions):
        if random.random() < 0.1:
            yield from _entry(random, number, known)
        if known and random.random() < 0.1:
            gone = random.choice(list(known))
            del known[gone]
            yield f"gone\t{gone}"
        yield _question(random)


def _entry(random: Random, number: int, known: dict[int, str]) -> Iterator[str]:
    """One more entry, unless there is one that says the same."""
    pattern, permission = random.choice((3, 3, 4)), random.choice((2, 3, 3, 3))
    principal, host = random.choice(PRINCIPALS), random.choice(HOSTS)
    entry = (
        f"{random.choice(TYPES)}\t{_name(random)}\t{pattern}\t{principal}\t{host}\t"
        f"{random.choice(OPERATIONS)}\t{permission}"
    )
    if entry not in known.values():
        known[number] = entry
        yield f"acl\t{number}\t{entry}"


def _question(random: Random) -> str:
    kind, name = random.choice(ASKERS)
    asker = f"{kind}\t{name}\t{random.choice(ADDRESSES)}"
    operation = random.choice([each for each in OPERATIONS if each > 2])
    if random.random() < 0.2:
        return f"any\t{asker}\t{operation}\t{random.choice(TYPES)}"
    return f"ask\t{asker}\t{operation}\t{random.choice(TYPES)}\t{_name(random)}"


def _name(random: Random) -> str:
    return random.choice(RARE_NAMES if random.random() < 0.05 else NAMES)


def many_entries(random: Random, count: int) -> Iterator[str]:
    """An authorizer of a large cluster: teams with topics, prefixes and wildcards of their own."""
    yield "new\tUser:root\tfalse"
    made: dict[str, None] = {}
    while len(made) < count:
        team = random.randrange(count // 20)
        name = random.choice((f"team-{team}.topic-{random.randrange(40)}", f"team-{team}."))
        pattern = 4 if name.endswith(".") else 3
        who = f"User:team-{team}-{random.randrange(5)}"
        permission = random.choice((2, 3, 3, 3, 3, 3))
        made[f"2\t{name}\t{pattern}\t{who}\t*\t{random.randrange(3, 12)}\t{permission}"] = None
    for number, entry in enumerate(made):
        yield f"acl\t{number}\t{entry}"
    yield "load"


def many_questions(random: Random, entries: int, count: int) -> Iterator[str]:
    """Questions about `many_entries`: mostly about the asker's own topics."""
    for _ in range(count):
        team = random.randrange(entries // 20)
        other = team if random.random() < 0.9 else random.randrange(entries // 20)
        asker = f"User\tteam-{team}-{random.randrange(5)}\t10.0.0.1"
        name = f"team-{other}.topic-{random.randrange(40)}"
        yield f"ask\t{asker}\t{random.randrange(3, 12)}\t2\t{name}"


class OurAuthorizer:
    """Answers the same lines by our class."""

    def __init__(self) -> None:
        self._loader = MetadataLoader()
        self.authorizer = StandardAuthorizer(frozenset())
        self._batch: list[Message] = []

    def answers(self, lines: Sequence[str]) -> list[str]:
        """Return an answer to each line that asks something."""
        found = []
        for line in lines:
            try:
                answer = self._take(line.split("\t"))
            except AuthorizerNotReady:
                answer = "E AuthorizerNotReadyException"
            found += [] if answer is None else [answer]
        return found

    def _take(self, fields: Sequence[str]) -> str | None:
        match fields[0]:
            case "new":
                allows = fields[2].lower() == "true"
                users = super_users(fields[1])
                self.authorizer = StandardAuthorizer(users, allows_without_acl=allows)
                self._loader, self._batch = MetadataLoader(), []
            case "acl" | "gone":
                self._batch.append(_record(fields))
                if self.authorizer.is_loaded:
                    self._replay()
                    self.authorizer.apply(self._loader.take_delta())
            case "load":
                self._replay()
                self.authorizer.load(self._loader.take_delta().after)
            case "ask" | "any":
                return "A" if self._decides(fields) else "D"
            case "host":
                return host_text(fields[1])
        return None

    def _decides(self, fields: Sequence[str]) -> bool:
        if fields[0] == "ask":
            return self.authorizer.authorize(*question(fields))
        asker, host, operation, kind, _ = question([*fields, ""])
        return self.authorizer.authorize_any(asker, host, operation, kind)

    def _replay(self) -> None:
        if self._batch:
            self._loader.take_batch(self._batch, self._loader.last_offset + 1, 1)
        self._batch = []


def question(fields: Sequence[str]) -> tuple[Principal, str, AclOperation, ResourceType, str]:
    """Return what a line asks of an authorizer."""
    asker, host = Principal(fields[1], fields[2]), host_text(fields[3])
    return asker, host, AclOperation(int(fields[4])), ResourceType(int(fields[5])), fields[6]


def _record(fields: Sequence[str]) -> Message:
    acl_id = Uuid(int(fields[1]).to_bytes(16, "big"))
    if fields[0] == "gone":
        return RemoveAccessControlEntryRecord(id=acl_id)
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=int(fields[2]),
        resource_name=fields[3],
        pattern_type=int(fields[4]),
        principal=fields[5],
        host=fields[6],
        operation=int(fields[7]),
        permission_type=int(fields[8]),
    )
