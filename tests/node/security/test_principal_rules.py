"""`ssl.principal.mapping.rules`: the cases of Kafka's own test, and what was observed.

The names and rules of the first table are KIP-371's own examples.
"""

import pytest

from kraft_wire.node.security.principal_rules import InvalidPrincipalRule, parse_principal_rules

RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, "
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, "
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        ("OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_wins(subject: str, name: str) -> None:
    """SEC-TLS-15: L and U fold case, DEFAULT leaves the name."""
    assert parse_principal_rules(RULES).name_of(subject) == name


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("RULE:.*/anyone/", "anyoneanyone"),
        ("RULE:CN=(\\w+)/$12/", "ann2"),
        (r"RULE:CN=(\w+)/\$1/", "$1"),
        (r"RULE:CN=(a)(n)n/$2\/$1/U", "N/A"),
        ("RULE:CN=ann//", ""),
        ("RULE:CN=an/x/,RULE:CN=ann/y/", "y"),
        ("RULE:CN=an/x/", None),
        ("", None),
        ("DEFAULT", "CN=ann"),
    ],
)
def test_replacements_are_javas(rules: str, name: str | None) -> None:
    """SEC-TLS-15, SEC-TLS-16: every match is replaced, groups are numbered, no rule is no name."""
    assert parse_principal_rules(rules).name_of("CN=ann") == name


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAULT/L",
        "DEFAULT DEFAULT",
        "RULE:CN=ann/x",
        "RULE:CN=ann/x/LU",
        "RULE:CN=ann/x/l",
        "CN=ann",
        "RULE:(/x/",
        "RULE:CN=ann/$1/",
        "RULE:CN=ann/$/",
        r"RULE:\p{Lower}+/x/",
        "RULE:(?<who>.*)/x/",
        "RULE:[a-z&&[^b]]/x/",
        "RULE:CN=ann/x/,,",
        "RULE:a{99999999999}/x/",
        pytest.param(f"RULE:{'(' * 3_000}{')' * 3_000}/x/", id="deep"),
        pytest.param(f"RULE:CN=ann/${'9' * 5_000}/", id="a group of many digits"),
    ],
)
def test_what_is_no_rule_stops_the_start(rules: str) -> None:
    """SEC-TLS-16: also what Java alone understands in a pattern."""
    with pytest.raises(InvalidPrincipalRule):
        parse_principal_rules(rules)


def test_a_name_without_end_matches_nothing() -> None:
    """SEC-TLS-16: names are the client's choice, and patterns may be slow."""
    assert parse_principal_rules("RULE:.*/x/").name_of("CN=" + "a" * 20_000) is None
