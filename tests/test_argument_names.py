"""No argument is passed to a parameter of another name, clock or unit: they were swapped.

Exceptions are listed with their reason. A place that is not listed fails, as does an entry without
a place.
"""

import ast
from typing import Final

import pytest

from tests.argument_names import Signatures, misplaced
from tests.tidiness import modules

_ONE_STEP = "a new or unchanged member is the former one too"
_KAFKA = "Kafka's name of the field; a member epoch is what the classic protocol calls a generation"
_FACTORY = "a callable in a field, which only has the name of a method"
_FOREIGN = "a method of the standard library"
_PART = "a part of each image"
_OPTION = "the values of --option; the parameter of that name is how the option is called"
_VOTER = "a voter of the former set, compared with one of the new set"
_STEP = "the state that a step leads to, from which the next one starts"
_LAST = "the log ends in that epoch"
_TABLE = "the table of the struct, not that of the message"

MEANT: Final = {
    "audit/walk.py: Step(first=end)": "the first offset of a fault is the end so far",
    "audit/snapshot_checks.py: _difference(folded=image)": _PART,
    "broker/groups/consumer/heartbeat.py: Walk(former=member)": _ONE_STEP,
    "broker/groups/consumer/migration/classic_join.py: JoinGroupResponse(generation_id=member_epoch)": _KAFKA,  # noqa: E501  # a key
    "broker/groups/consumer/migration/classic_join.py: Walk(former=member)": _ONE_STEP,
    "broker/groups/consumer/migration/upgrade.py: ConsumerMember(member_epoch=generation_id)": _KAFKA,  # noqa: E501  # a key
    "broker/groups/consumer/migration/upgrade.py: ConsumerMember(previous_member_epoch=generation_id)": _KAFKA,  # noqa: E501  # a key
    "broker/groups/describing.py: fail(now_ms=error)": _FACTORY,
    "broker/groups/streams/heartbeat.py: Walk(former=member)": _ONE_STEP,
    "broker/groups/streams/heartbeat.py: Walk(owned=member)": _ONE_STEP,
    "broker/handlers/txn_offset_commit.py: OffsetCommitRequest(generation_id_or_member_epoch=generation_id)": _KAFKA,  # noqa: E501  # a key
    "broker/replication/leader_questions.py: OffsetForLeaderPartition(current_leader_epoch=leader_epoch)": (  # noqa: E501  # a key
        "that of the follower; the request's other epoch is the one whose end is wanted"
    ),
    "broker/replication/leadership.py: _wanted(maximal_isr=isr)": "a smaller ISR is wanted",
    "broker/share_fetch/log_batches.py: LogBatch(last_offset=base_offset)": "of one record",
    "broker/share_fetch/share_partition.py: settings(brokers_count=group_id)": _FACTORY,
    "cli/acls/admin.py: _entry(resource=acl)": "a filter has the fields of a resource itself",
    "cli/cluster/certificates.py: _signed(key=authority_key)": "an authority signs itself",
    "cli/configs/command.py: unknown_name(name=kind)": "a kind of resource that is not known",
    "cli/spark/export.py: settings_of(conf=option)": _OPTION,
    "cli/spark/ingest.py: settings_of(conf=option)": _OPTION,
    "client/group_offsets.py: OffsetCommitRequest(generation_id_or_member_epoch=generation_id)": _KAFKA,  # noqa: E501  # a key
    "conformance/cases/client_quotas.py: ComponentData(match_type=match)": "how names match",
    "conformance/cases/describe_quorum.py: metadata_fetch(last_fetched_epoch=epoch)": _LAST,
    "conformance/cases/fetch_of_metadata.py: metadata_fetch(last_fetched_epoch=epoch)": _LAST,
    "conformance/cases/offset_commit.py: OffsetCommitRequest(generation_id_or_member_epoch=generation_id)": _KAFKA,  # noqa: E501  # a key
    "node/links/forwarding.py: _Question(sent=request)": "nothing was changed before sending",
    "sim/clients/transactors.py: ClientTransaction(client=number)": "the number of the client",
    "sim/clients/transactors.py: Value(client=number)": "the number of the client",
    "sim/crash/bit_flip_fixtures.py: Fixture(expected=content)": "the undamaged file is as made",
    "sim/faults/quorum_faults.py: heal(source=target)": "both directions",
    "sim/faults/quorum_faults.py: heal(target=source)": "both directions",
    "sim/faults/quorum_faults.py: keep(name=kind)": "a line of the trace is named for the fault",
    "sim/judge/model/watch.py: _is_same(state=after)": _STEP,
    "sim/judge/model/watch.py: _leads_to(done=change)": _STEP,
    "sim/judge/model/watch.py: _leads_to(state=after)": _STEP,
    "sim/judge/upkeep_invariants.py: _between(start=end)": "bytes behind an end",
    "sim/quorum_model/judgment.py: matches(stored=key)": _VOTER,
    "sim/quorum_model/rules.py: matches(stored=key)": _VOTER,
    "sim/quorum_model/starts.py: Replica(key=leader)": "the leader's own state",
    "sim/judge/compaction_pass.py: SeenSegment(end_offset=base_offset)": "the next segment",
    "sim/quorum_model/starts.py: Replica(voted=leader)": "the vote that made it the leader",
    "spark/kraftwire/wire_sink.py: append(batches=wall_ms)": "of a producer, not a log",
    "testing/faults/documents.py: _number(name=value)": "a key of the document",
    "testing/faults/error_answers.py: struct_class(struct=table)": _TABLE,
    "testing/faults/partitions.py: Place(partition=element)": "the struct of a partition",
    "testing/faults/partitions.py: Place(topic=element)": "the struct of a topic",
    "wire/dissect.py: Piece(start=end)": "the rest starts at the end of what was read",
    "wire/header.py: pack(open_cost_bytes=correlation_id)": _FOREIGN,
    "wire/json_form.py: struct_class(struct=table)": _TABLE,
    "wire/strict.py: is_inside(tagged=path)": "the path of a tag that is open",
    "wire/walker.py: struct_class(struct=table)": _TABLE,
}
"""Module below `kraft_wire` and call: why."""

SOURCE = """
@frozen
class Range:
    first_offset: int
    last_offset: int

class Log:
    def __init__(self, start_offset, end_offset, *, size_bytes=0):
        self.start_offset = {kept}
        self._end_offset = end_offset

    def tick(self, now_ms, wall_ms):
        self.expire({ticked})

    def expire(self, now_ms):
        return Range({ranged})

def ask(topic, partition):
    return ask({asked}), Log(1, 2, size_bytes={sized})
"""
RIGHT = {
    "kept": "start_offset",
    "ticked": "now_ms",
    "ranged": "first_offset, self.last_offset",
    "asked": "topic, partition",
    "sized": "length",
}


def found_in(**wrong: str) -> list[str]:
    tree = ast.parse(SOURCE.format(**{**RIGHT, **wrong}))
    return [str(each) for each in misplaced(tree, Signatures.of([tree]))]


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ({}, []),
        ({"kept": "end_offset"}, ["__init__(start_offset=end_offset)"]),
        ({"ticked": "wall_ms"}, ["expire(now_ms=wall_ms)"]),
        ({"ticked": "context.wall_ms"}, ["expire(now_ms=wall_ms)"]),
        (
            {"ranged": "last_offset, first_offset"},
            ["Range(first_offset=last_offset)", "Range(last_offset=first_offset)"],
        ),
        ({"ranged": "1, last_offset=self._first_offset"}, ["Range(last_offset=first_offset)"]),
        ({"asked": "self.partition, 0"}, ["ask(topic=partition)"]),
        ({"sized": "records_count"}, ["Log(size_bytes=records_count)"]),
    ],
)
def test_argument_with_another_name_is_found(wrong: dict[str, str], found: list[str]) -> None:
    assert found_in(**wrong) == found


def test_every_argument_is_passed_to_the_parameter_that_has_its_name() -> None:
    own = [each for each in modules() if each.package not in ("codegen", "mutants")]
    signatures = Signatures.of(each.tree for each in own)
    found = {
        f"{module.path.removeprefix('kraft_wire/')}: {each}": f"{module.path}:{each.line}: {each}"
        for module in own
        for each in misplaced(module.tree, signatures)
    }
    assert [place for key, place in found.items() if key not in MEANT] == []
    assert set(MEANT) <= set(found)
