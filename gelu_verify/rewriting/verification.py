"""Verify a rewritten model: this joins wiring, sites and facts into one result a format."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn

from gelu_verify import contracts, provenance
from gelu_verify.bounds import Arithmetic
from gelu_verify.contracts import Contract
from gelu_verify.errors import UsageError
from gelu_verify.formats import Format, tensors
from gelu_verify.kernels import activity, interpreter
from gelu_verify.kernels.failure import failure
from gelu_verify.kernels.subject import wait_for
from gelu_verify.records import (
    Finding,
    FindingStatus,
    GradientAccuracy,
    KernelResult,
    Results,
    Status,
)
from gelu_verify.report.numbers import figure
from gelu_verify.rewriting import comparison
from gelu_verify.rewriting.evaluation import Evaluation, evaluate
from gelu_verify.rewriting.judging import Judged, judge
from gelu_verify.rewriting.run import OnStage
from gelu_verify.rewriting.sites import Capturing, Visit
from reference_kernels.rewriting import Report

OPERATOR = "rewriting"
_SEED = 1


def verify(
    model: nn.Module,
    rewritten: fx.GraphModule,
    inputs: tuple[Any, ...],
    *,
    contract: str = contracts.DEFAULT,
    name: str = "model",
    reproduce: str | None = None,
    on_stage: OnStage = lambda: None,
) -> Results:
    """Return what holds of a model that ``reference_kernels.rewriting.rewrite`` gave.

    Runs both models in this process, forward and backward, and in float64. on_stage: called before
    each of them runs, and before their sites do. Raises ``UsageError`` for a model that no rewrite
    gave, or whose result is no function of its inputs.
    """
    report = rewritten.meta.get("rewriting")
    if not isinstance(report, Report):
        raise UsageError("rewritten: got a module that no rewrite gave, expected rewrite()'s.")
    device = next((str(p.device) for p in model.parameters()), "cpu")
    run = _Run(
        model, rewritten, report, inputs, contracts.get(contract), name, device, reproduce, on_stage
    )
    environment = provenance.environment(provenance.runtime(device))
    return Results(environment=environment, kernels=tuple(run.results()))


@dataclass
class _Run:
    """One verification: what is compared, and under what name and contract."""

    model: nn.Module
    rewritten: fx.GraphModule
    report: Report
    inputs: tuple[Any, ...]
    contract: Contract
    name: str
    device: str
    reproduce: str | None
    on_stage: OnStage
    started: float = field(default_factory=time.perf_counter)
    launches: int = field(default_factory=interpreter.launches)

    def results(self) -> list[KernelResult]:
        """Return a result for each format of the sites; one that says so where there is none."""
        left = [
            self._finding("left alone", FindingStatus.NOTED, f"{part.place}: {part.reason}")
            for part in self.report.left
        ]
        if not self.report.replaced:
            nothing = self._finding("sites", FindingStatus.SKIPPED, "nothing was replaced")
            return [self._result("-", Status.UNAVAILABLE, [nothing, *left])]
        own = dict(self.model.named_parameters())
        original = self._evaluated(self.model, own)
        comparison.require_deterministic(original, self._evaluated(self.model, own))
        capturing = Capturing(self.rewritten, self.report.replaced)
        named = comparison.parameters(self.model, self.rewritten)
        try:
            got = self._evaluated(capturing.run, named)
        except (Exception, SystemExit) as error:
            crash = self._finding("call", FindingStatus.FAILED, str(failure(error)))
            return [self._result("-", Status.CRASHED, [crash, *left])]
        facts = [*self._model(original, got), *left]
        formats: dict[Format, list[Visit]] = {}
        for visit in capturing.visits:
            formats.setdefault(tensors.format_of(visit.result.dtype), []).append(visit)
        return [self._format(fmt, visits, facts) for fmt, visits in formats.items()]

    def _evaluated(self, run: Callable[..., Any], parameters: Mapping[str, Tensor]) -> Evaluation:
        """Evaluate a model in its own format, as the kernel's time."""
        self.on_stage()
        with activity.of_kernel():
            found = evaluate(run, parameters, self.inputs, _SEED)
            wait_for(torch.device(self.device))
        return found

    def _model(self, original: Evaluation, got: Evaluation) -> list[Finding]:
        """Return what is true of the model as a whole."""
        sites = self.report.replaced
        right = comparison.truth(self.model, self.rewritten, sites, self.inputs, _SEED)
        unlike = right.unlike(sites)
        found = [self._finding("wiring", FindingStatus.FAILED, text) for text in unlike]
        if not unlike:
            text = f"in float64 the rewritten graph is the original ({_sites(len(sites))} exact)"
            found = [self._finding("wiring", FindingStatus.PASSED, text)]
        noted = {
            "original": comparison.bits(got, original),
            "truth": comparison.errors(got, original, right.original),
        }
        return found + [self._finding(k, FindingStatus.NOTED, text) for k, text in noted.items()]

    def _format(self, fmt: Format, visits: list[Visit], facts: list[Finding]) -> KernelResult:
        arithmetic = Arithmetic.of(fmt, self.contract, self.device)
        self.on_stage()
        with torch.enable_grad():
            found = judge(visits, arithmetic)
        replaced = [self._finding("replaced", FindingStatus.NOTED, str(v.site)) for v in visits]
        findings = [*self._verdicts(found), *facts, *replaced]
        failed = any(finding.status is FindingStatus.FAILED for finding in findings)
        status = Status.FAILED if failed or not found.results.elements else Status.PASSED
        return self._result(
            fmt.name,
            status,
            findings,
            formula=", ".join(dict.fromkeys(visit.site.formula for visit in visits)),
            bound=found.results.as_record(arithmetic) if found.results.elements else None,
            gradients=tuple(
                GradientAccuracy(argument=name, bound=ratios.as_record(arithmetic))
                for name, ratios in found.gradients.items()
                if ratios.elements
            ),
        )

    def _verdicts(self, found: Judged) -> list[Finding]:
        findings = [self._verdict("bound", "", found.results)]
        findings += [self._verdict("gradient", f"d{k}: ", v) for k, v in found.gradients.items()]
        findings += [self._finding("gradient", FindingStatus.NOTED, text) for text in found.missing]
        return findings

    def _verdict(self, check: str, prefix: str, found: Any) -> Finding:
        if told := found.told():
            case, message = told
            text = f"{prefix}{message}"
            return self._finding(check, FindingStatus.FAILED, text, f"site {case}")
        if check == "bound" and not found.informative:
            text = "no evidence: none of the elements could tell a fault. Give other inputs"
            return self._finding(check, FindingStatus.FAILED, text)
        text = (
            f"{prefix}{found.elements:,} elements of {_sites(found.cases)} within their bound; "
            f"at most {figure(found.max_ratio)} of it"
        )
        return self._finding(check, FindingStatus.PASSED, text)

    def _finding(
        self, check: str, status: FindingStatus, message: str, where: str | None = None
    ) -> Finding:
        again = self.reproduce if status is FindingStatus.FAILED else None
        return Finding(check=check, status=status, message=message, input=where, reproduce=again)

    def _result(
        self, fmt: str, status: Status, findings: list[Finding], formula: str = "-", **figures: Any
    ) -> KernelResult:
        return KernelResult(
            name=self.name,
            target=self.name,
            operator=OPERATOR,
            formula=formula,
            format=fmt,
            device=self.device,
            simulated=interpreter.launches() > self.launches,
            status=status,
            contract=self.contract.name,
            findings=tuple(findings),
            seconds=time.perf_counter() - self.started,
            **figures,
        )


def _sites(count: int) -> str:
    return "1 site" if count == 1 else f"{count} sites"
