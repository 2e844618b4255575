"""Users that log in have the rights of their entries, on our node and on Apache's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apache.secured_node import ACCOUNTS, SecuredApache, SecuredNode, sasl_settings
from tests.cluster_command import kraft_wire
from tests.process import write_properties
from tests.waiting import until

SETTINGS = {
    **sasl_settings("SECURE"),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:broker;User:ANONYMOUS",
}
MECHANISM_OF = {"ann": "SCRAM-SHA-256", "broker": "PLAIN"}
MODULE_OF = {"SCRAM-SHA-256": "scram.Scram", "PLAIN": "plain.Plain"}


class Users:
    """Runs commands as one of the users, behind its login."""

    def __init__(self, address: str, directory: Path) -> None:
        self._address, self._directory = address, directory
        for user, mechanism in MECHANISM_OF.items():
            module = f"org.apache.kafka.common.security.{MODULE_OF[mechanism]}LoginModule"
            account = f'username="{user}" password="{ACCOUNTS[user]}"'
            settings = {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": f"{module} required {account};",
            }
            write_properties(directory / f"{user}.properties", settings)

    def run(self, user: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        file = str(self._directory / f"{user}.properties")
        return kraft_wire(*words, "-b", self._address, "--command-config", file)

    def did(self, user: str, *words: str) -> str:
        """Run a command that must succeed."""
        done = self.run(user, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def topics_of(self, user: str) -> list[str]:
        """Return the topics that a user sees."""
        listed = json.loads(self.did(user, "topics", "list", "--json"))
        return sorted(each["name"] for each in listed)


@pytest.fixture(scope="module", params=["ours", pytest.param("apache", marks=pytest.mark.java)])
def users(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Users]:
    directory = tmp_path_factory.mktemp(request.param)
    node: SecuredNode | SecuredApache
    if request.param == "ours":
        node = SecuredNode(directory, "SASL_PLAINTEXT", SETTINGS)
        node.format()
    else:
        node = SecuredApache(directory, "SASL_PLAINTEXT", SETTINGS)
    with node:
        yield Users(node.secure, directory)


def test_a_user_may_do_what_its_entries_say(users: Users) -> None:
    """SEC-ACL-02, SEC-API-01: by the name of the login, whatever its mechanism."""
    refused = users.run("ann", "topics", "create", "hers")
    assert (refused.returncode, "TOPIC_AUTHORIZATION_FAILED" in refused.stderr) == (1, True), (
        refused
    )
    users.did("broker", "topics", "create", "hers")
    users.did("broker", "topics", "create", "other")
    assert users.topics_of("ann") == []
    everything = ("--operation", "All", "--topic", "hers")
    users.did("broker", "acls", "add", "--allow-principal", "User:ann", *everything)
    until(lambda: users.topics_of("ann") == ["hers"])
    users.did("ann", "produce", "hers", "--value", "hello")
    read = ("consume", "hers", "--from-beginning", "--max-messages", "1")
    assert users.did("ann", *read) == "hello\n"
    hidden = users.run("ann", "produce", "other", "--value", "hello")
    assert hidden.returncode == 1
    assert "TOPIC_AUTHORIZATION_FAILED" in hidden.stderr, hidden
    users.did("broker", "acls", "add", "--deny-principal", "User:ann", *everything)
    until(lambda: users.topics_of("ann") == [])
    assert users.topics_of("broker") == ["hers", "other"]
