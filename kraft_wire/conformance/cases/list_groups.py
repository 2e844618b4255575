"""ListGroups, API key 16: the groups that a broker coordinates."""

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.members import stable_member
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListGroupsRequest, ListGroupsResponse


def _listed(broker: Subject, version: int, request: ListGroupsRequest) -> set[str]:
    answer = broker.ask(request, version, ListGroupsResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    return {each.group_id for each in answer.groups}


@case("ListGroups", "Kafka protocol guide, ListGroups API")
def group_with_members(broker: Subject, version: int) -> None:
    """A group with members is listed.

    Join, sync, list.
    """
    group_id = broker.group()
    stable_member(broker, group_id)
    listed = _listed(broker, version, ListGroupsRequest())
    expect.true(group_id in listed, f"{group_id} among them", len(listed), "groups")


@case("ListGroups", "KIP-518", since=4)
def filter_by_state(broker: Subject, version: int) -> None:
    """Groups in other states are omitted.

    List the stable groups, then the empty ones: a stable group is among the first only.
    """
    group_id = broker.group()
    stable_member(broker, group_id)
    stable = _listed(broker, version, ListGroupsRequest(states_filter=["Stable"]))
    empty = _listed(broker, version, ListGroupsRequest(states_filter=["Empty"]))
    found = (group_id in stable, group_id in empty)
    expect.true(found == (True, False), "among the stable groups only", found, "groups")


@case("ListGroups", "KIP-848, ListGroups", since=5)
def filter_by_type(broker: Subject, version: int) -> None:
    """Groups of other types are omitted.

    List the classic groups, then the consumer groups.
    """
    group_id = broker.group()
    stable_member(broker, group_id)
    classic = _listed(broker, version, ListGroupsRequest(types_filter=["classic"]))
    consumer = _listed(broker, version, ListGroupsRequest(types_filter=["consumer"]))
    found = (group_id in classic, group_id in consumer)
    expect.true(found == (True, False), "among the classic groups only", found, "groups")


@case("ListGroups", "KIP-518, KIP-848", since=4)
def filters_of_several_states(broker: Subject, version: int) -> None:
    """States match in any letter case; an unknown state matches nothing.

    List a stable group by some lists of states.
    """
    group_id = broker.group()
    stable_member(broker, group_id)
    for states, is_listed in (
        (["Empty", "Stable"], True),
        (["stable"], True),
        (["Sleeping"], False),
        ([], True),
    ):
        listed = _listed(broker, version, ListGroupsRequest(states_filter=states))
        found = group_id in listed
        expect.true(found == is_listed, f"{is_listed} by {states}", found, "groups")


@case("ListGroups", "KIP-848, ListGroups", since=5)
def filter_by_types_in_any_case(broker: Subject, version: int) -> None:
    """Types match in any letter case; an unknown type matches nothing; both filters count.

    List a stable classic group by some lists of types and states.
    """
    group_id = broker.group()
    stable_member(broker, group_id)
    for types, states, is_listed in (
        (["CLASSIC"], [], True),
        (["Consumer", "Classic"], ["stable"], True),
        (["classic"], ["Empty"], False),
        (["sleeping"], [], False),
    ):
        request = ListGroupsRequest(types_filter=types, states_filter=states)
        found = group_id in _listed(broker, version, request)
        expect.true(found == is_listed, f"{is_listed} by {types}, {states}", found, "groups")


@case("ListGroups", "KIP-518, KIP-848")
def description_in_the_list(broker: Subject, version: int) -> None:
    """A listed group has its protocol type, and in later versions its state and its type.

    Join, sync, list.
    """
    group_id = broker.group()
    stable_member(broker, group_id)
    answer = broker.ask(ListGroupsRequest(), version, ListGroupsResponse)
    (found,) = [each for each in answer.groups if each.group_id == group_id]
    state = "Stable" if version >= 4 else ""
    kind = "classic" if version >= 5 else ""
    seen = found.protocol_type, found.group_state, found.group_type
    wanted = ("consumer", state, kind)
    expect.true(seen == wanted, str(wanted), seen, "groups")
