"""A gate as JUnit XML: a suite for contracts, one for baselines, a test case a result."""

from __future__ import annotations

import re

from junitparser import Error, JUnitXml, Skipped, TestCase, TestSuite
from junitparser import Failure as JUnitFailure

from gelu_verify.gate.record import GateResults
from gelu_verify.records import KernelResult, Status
from gelu_verify.report import gate

#: What XML 1.0 cannot hold, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(results: GateResults) -> str:
    """Return the document."""
    document = JUnitXml("gelu_verify gate")
    for suite in (_contracts(results), _baselines(results)):
        suite.timestamp = results.environment.date.partition("+")[0]
        document.add_testsuite(suite)
    document.update_statistics()
    return document.tostring().decode("utf-8")


def _contracts(results: GateResults) -> TestSuite:
    suite = TestSuite("contracts")
    suite.add_property("profile", results.profile.value)
    suite.add_property("seed", str(results.seed))
    for result in (*results.replayed, *results.kernels):
        kind = "hard cases" if result.replayed else "contract"
        what = f"{result.operator} {result.formula} {result.format} {result.device}: {kind}"
        case = TestCase(_legal(what), _legal(result.label), round(result.seconds, 3))
        if result.status is Status.UNAVAILABLE:
            case.result = [Skipped(_legal(result.findings[0].message))]
        elif not result.status.holds:
            case.result = [_failure(result)]
        suite.add_testcase(case)
    return suite


def _failure(result: KernelResult) -> JUnitFailure | Error:
    """Return the failure of a result: an error where the kernel did not come to an end."""
    of_result = [gate.of_contract(result, f) for f in result.failures or result.findings]
    kind = JUnitFailure if result.status is Status.FAILED else Error
    found = kind(_legal(of_result[0].message), result.status.value)
    found.text = _legal("\n\n".join("\n".join(f.lines()) for f in of_result))
    return found


def _baselines(results: GateResults) -> TestSuite:
    suite = TestSuite("baselines")
    failing = {id(c): f for c, f in zip(results.failed, gate.of_baselines(results), strict=True)}
    for compared in results.compared:
        what = f"{compared.operator} {compared.key.formula} {compared.key.format} {compared.device}"
        case = TestCase(_legal(f"{what}: baseline"), _legal(compared.label), 0.0)
        if id(compared) in failing:
            failure = JUnitFailure(_legal(compared.message), compared.verdict.value)
            failure.text = _legal("\n".join(failing[id(compared)].lines()))
            case.result = [failure]
        elif compared.verdict == "not_compared":
            case.result = [Skipped(_legal(compared.message))]
        suite.add_testcase(case)
    return suite


def _legal(content: str) -> str:
    return _FORBIDDEN.sub("�", content)
