"""`kraft-wire wire apis`: the registry from the command line."""

import json

from typer.testing import CliRunner

from kraft_wire.apis.registry import APIS
from kraft_wire.cli.wire.command import app


def test_every_api_is_listed_with_its_versions_and_owners() -> None:
    done = CliRunner().invoke(app, ["apis", "--json"])
    listed = {each["key"]: each for each in json.loads(done.stdout)}
    assert list(listed) == list(APIS)
    fetch = listed[1]
    assert (fetch["min_version"], fetch["max_version"]) == APIS[1].versions
    assert (fetch["minVersion"], fetch["maxVersion"]) == APIS[1].versions, "what people call stays"
    assert fetch["listeners"]["controller"] == {
        "owner": "raft",
        "needs": ["CLUSTER_ACTION CLUSTER"],
        "refused": ["CLUSTER_AUTHORIZATION_FAILED"],
    }
    assert listed[16]["listeners"]["broker"]["refused"] == [None]
    assert listed[26]["listeners"]["broker"]["owner"] == "broker"
    assert listed[71]["listeners"]["broker"]["owner"] is None, "not served"


def test_table_has_a_line_for_each_api() -> None:
    done = CliRunner().invoke(app, ["apis"])
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == len(APIS) + 1
