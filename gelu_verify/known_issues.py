"""Declared known issues: they excuse the failure they name, and nothing else."""

from __future__ import annotations

from gelu_verify.job import Job
from gelu_verify.records import Finding, FindingStatus


def apply_known_issues(findings: tuple[Finding, ...], job: Job) -> tuple[Finding, ...]:
    """Turn failures that are declared into known issues, and declared ones that pass into failures.

    A fault that has gone must not stay declared: it would excuse its own return. What is declared
    is declared for the kernel's own contract and formula; under others it says nothing. A run of
    a few inputs may miss the fault, so only a standard or deeper sweep can show that it has gone.
    """
    if (job.contract.name, job.formula) != (job.spec.contract, job.spec.formula):
        return findings
    whole = not job.replay and job.depth != "quick"
    changed = list(findings)
    for issue in job.spec.known_issues:
        if not issue.applies(job.operator, job.format, job.device.split(":")[0], job.depth):
            continue
        failed = [
            i
            for i, finding in enumerate(changed)
            if finding.check == issue.check
            and finding.status in (FindingStatus.FAILED, FindingStatus.KNOWN_ISSUE)
            and issue.covers(finding.input)
        ]
        for i in failed:
            update = {"status": FindingStatus.KNOWN_ISSUE, "link": issue.link}
            changed[i] = changed[i].model_copy(update=update)
        if not failed and whole:
            changed.append(
                Finding(
                    check=issue.check,
                    status=FindingStatus.FAILED,
                    message=(
                        f"known issue {issue.link} ({issue.summary}) no longer shows. "
                        "Remove its declaration."
                    ),
                )
            )
    return tuple(changed)
