"""`attestation.json`: an in-toto statement about the build that was tested, ready to be signed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from conformance.reports.facts import Standing, standing
from conformance.results.grouping import grouped
from conformance.results.subject import Subject
from conformance.results.text import visible
from conformance.results.verdicts import RunVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reports.facts import Facts

_RESULTS = {RunVerdict.CONFORMANT: "PASSED", RunVerdict.SELECTION_HOLDS: "WARNED", RunVerdict.INCOMPLETE: "WARNED"}


def render(facts: Facts, digests: Mapping[str, str]) -> str | None:
    """Return the statement with the digests of the other files, by their path; None when the operator named no subject.

    Only a conformant run is PASSED. A run of selected requirements, or an incomplete one, is WARNED; every other result
    is FAILED.
    """
    header = facts.record.header
    if not header.subjects:
        return None
    subjects = [Subject.parse(text) for text in header.subjects]
    names = grouped((standing(row), visible(row.requirement.id)) for row in facts.result.rows)
    warned = (Standing.WARNING, Standing.UNSTABLE, Standing.BROKEN, Standing.OPEN)
    footer = facts.record.footer
    configuration = [{"name": "contract", "digest": {"sha256": header.contract}}]
    if footer is not None and footer.digest:
        configuration.append({"name": "results.jsonl without its footer", "digest": {"sha256": footer.digest}})
    data = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": subject.name, "digest": {subject.algorithm: subject.digest}} for subject in subjects],
        "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
        "predicate": {
            "result": _RESULTS.get(facts.result.verdict, "FAILED"),
            "configuration": configuration,
            "passedTests": names.get(Standing.VERIFIED, []),
            "warnedTests": [name for kind in warned for name in names.get(kind, [])],
            "failedTests": names.get(Standing.VIOLATED, []),
            "annotations": {
                "verdict": str(facts.result.verdict),
                "explanation": visible(facts.result.explanation),
                "suite": header.suite,
                "version": header.version,
                "command": header.command,
                **({"merged": visible(facts.merged)} if facts.merged else {}),
                "reports": [{"name": name, "digest": {"sha256": digest}} for name, digest in digests.items()],
            },
        },
    }
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"
