"""The false-alarm proof: the suite finds no fault with any legal personality of the reference."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from conformance.proof.variants import VARIANTS, Variant
from conformance.reference import EmbeddedServer, create_service

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VERSIONS = ("15.9", "17.7", "19.0")


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_legal_variant_violates_nothing(
    conformance: Callable[..., Any],
    write_profile: Callable[..., Path],
    tmp_path: Path,
    variant: Variant,
) -> None:
    version = VERSIONS[VARIANTS.index(variant) % len(VERSIONS)]
    service = create_service(version=version, choices=variant.choices)
    with EmbeddedServer(service) as server:
        features = {"code_completion": True, "group_approval_rules": True, **variant.features}
        write_profile(service, server.base_url, version=version, features=features)
        outcome = conformance("run", "--target", "target.yaml", "--out", "out", "--max-examples", "3")
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    failed = {row["id"]: row["failures"][0] for row in report["requirements"] if row["verdict"] == "failed"}
    assert failed == {}, outcome.text[-2000:]
    assert "suite itself broke" not in outcome.text, outcome.text[-2000:]
