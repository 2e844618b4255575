"""Damage of eight kinds to three replicas: each fault is found and named once, none on clean ones.

A few hundred seeds here; `python -m tests.audit` runs as many as wanted, on real directories too.
"""

from __future__ import annotations

import pytest

from tests.audit.campaign import Campaign, Verdict
from tests.audit.clean_set import write_clean_set

SEEDS = 225
PARTS = 5


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return Campaign(write_clean_set(tmp_path_factory.mktemp("audit") / "clean"))


def test_clean_replicas_have_no_findings(campaign: Campaign) -> None:
    assert campaign.before == []


@pytest.mark.parametrize("part", range(PARTS))
def test_each_fault_is_found_and_named_once(campaign: Campaign, part: int) -> None:
    share = SEEDS // PARTS
    for seed in range(part * share, (part + 1) * share):
        damage, verdict, findings = campaign.run(seed)
        assert verdict is Verdict.NAMED, (seed, damage.kind, damage.detail, findings)
