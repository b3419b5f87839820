"""Tests of the tests: a fault planted in a copy of the measure or the judge must be noticed.

Controls are results that any judgement must reject (NaN, a constant, twice the value, one wrong
element of many, no element at all) and one that it must accept. With the real modules all of that
holds; each copy with one planted fault, as public comparators had them, must break some of it.
"""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest
import torch

from gelu_verify import allowances, contracts, formats, judge, operators
from gelu_verify.bounds import Arithmetic
from gelu_verify.checks.fused import ratios
from gelu_verify.elements import Elements
from gelu_verify.errors import EmptySampleError
from gelu_verify.measure import error
from gelu_verify.operators import fused
from gelu_verify.records import Fate
from gelu_verify.selftest import verdict
from reference_kernels.sound import forms
from tests.builders import finding, result
from tests.selftest.test_verdict import is_right, loses_the_tail, usual

FP32 = formats.get("fp32")
X = torch.linspace(-5.0, 5.0, 401)
GELU = operators.get("gelu")


#: What the 300th element of a control is called.
KINDS = {
    "nan": error.Class.NAN_FOR_NUMBER,
    "infinite": error.Class.INFINITY_FOR_FINITE,
    "zero": error.Class.COLLAPSE,
    "negated": error.Class.OPPOSITE_SIGN,
    "doubled": error.Class.NONE,
}


def one_wrong(right, wrong):
    y = right.clone()
    y[300] = wrong
    return y


def controls(right):
    """Results that are wrong, by name."""
    return {
        "nan": torch.full_like(right, torch.nan),
        "one nan": one_wrong(right, torch.nan),
        "infinite": torch.full_like(right, torch.inf),
        "one infinite": one_wrong(right, torch.inf),
        "constant": torch.full_like(right, 0.5),
        "zero": torch.zeros_like(right),
        "doubled": 2 * right,
        "shifted": right + 1,
        "negated": -right,
        "one wrong": one_wrong(right, 2.0),
        "one zero": one_wrong(right, 0.0),
    }


def copy(module: ModuleType, old: str, new: str) -> ModuleType:
    """A copy of a module with one place of its source changed."""
    source = inspect.getsource(module)
    assert source.count(old) == 1, f"{old!r} is {source.count(old)} times in {module.__name__}"
    made = ModuleType(module.__name__)
    exec(compile(source.replace(old, new), module.__name__, "exec"), made.__dict__)
    return made


def noticed(judging=judge, measuring=error) -> set[str]:
    """What goes wrong with these modules: controls that pass, and whatever is refused or sound."""
    contract = contracts.get("cancelling")

    def measured(actual, x=X):
        return measuring.measure(actual, GELU.exact((x,), "erf", FP32), FP32)

    def passes(actual, x=X) -> bool:
        errors = measured(actual, x)
        part = Elements(GELU, "erf", FP32, (x,), actual, errors)
        return not judging.judge(contract, part).broken.any()

    right = forms.erf(X)
    found = {name for name, actual in controls(right).items() if passes(actual)}
    if not passes(right):
        found.add("sound is rejected")
    try:
        passes(right[:0], X[:0])
        found.add("empty")
    except EmptySampleError:
        pass
    for name, kind in KINDS.items():
        if measured(controls(right)[name]).classes[300] != int(kind):
            found.add(f"kind of {name}")
    nan = torch.full((4,), torch.nan)
    if passes(torch.ones(4), nan) or not passes(nan, nan):
        found.add("nan in")
    return found


def test_nothing_is_noticed_when_nothing_is_planted():
    assert noticed() == set()


@pytest.mark.parametrize(
    ("old", "new", "shows"),
    [
        # iree-org/iree#20198: a negated comparison, which NaN passes.
        (
            "got = actual.to(torch.float64)\n",
            "got = actual.to(torch.float64).nan_to_num(nan=0.5)\n",
            "kind of nan",
        ),
        ("torch.isnan(got) & ~nan_due", "torch.isnan(got) & nan_due & False", "one nan"),
        # tenstorrent/tt-metal#22994: what is doubled scores as well.
        (
            "ulp, absolute = exact.compare(sized, fmt)",
            "ulp, absolute = exact.compare(sized * 0.5, fmt)",
            "doubled",
        ),
        # tenstorrent/tt-metal#24928: a constant scores 1.0.
        (
            "ulp, absolute = exact.compare(sized, fmt)",
            "ulp, absolute = (part * (sized.std() > 0) for part in exact.compare(sized, fmt))",
            "constant",
        ),
        # ScalingIntelligence/KernelBench#165: zeros pass.
        (
            "ulp, absolute = exact.compare(sized, fmt)",
            "ulp, absolute = (part * (sized != 0) for part in exact.compare(sized, fmt))",
            "one zero",
        ),
        ("(got * y.sign() < 0) & finite", "(got * y.sign() > 0) & finite", "kind of negated"),
        ("(got == 0) & (y != 0) & ~subnormal", "(got == 0) & subnormal", "kind of zero"),
    ],
)
def test_planted_fault_of_the_measure_is_noticed(old, new, shows):
    assert shows in noticed(measuring=copy(error, old, new))


@pytest.mark.parametrize(
    ("old", "new", "shows"),
    [
        ("    if len(errors) == 0:\n", "    if len(errors) < 0:\n", "empty"),
        ("within = size <= limit", "within = size >= limit", "one wrong"),
        ("holds = within |", "holds = within.any() |", "one wrong"),
        ("return Verdicts(~holds, by_allowance)", "return Verdicts(holds, {})", "nan"),
        # linkedin/Liger-Kernel#259: exactly one mismatch passes.
        (
            "return Verdicts(~holds, by_allowance)",
            "return Verdicts(~holds & ((~holds).sum() > 1), by_allowance)",
            "one wrong",
        ),
        ("(~errors.finite & no_class)", "~errors.finite", "one nan"),
        (
            "holds |= ~finite_inputs & (errors.classes != int(Class.NUMBER_FOR_NAN))",
            "holds |= ~finite_inputs",
            "nan in",
        ),
    ],
)
def test_planted_fault_of_the_judge_is_noticed(old, new, shows):
    assert shows in noticed(judging=copy(judge, old, new))


def test_planted_fault_of_the_allowances_is_noticed(monkeypatch):
    right = "return elements.errors.finite & (cancellation_ratio"
    faulty = copy(allowances, right, right.replace("&", "|"))
    monkeypatch.setattr(judge, "exemptions", faulty.exemptions)
    assert "doubled" in noticed()


def accepted_by(module) -> set[str]:
    """Controls that the judgement of fused results lets pass."""
    operator = fused.get("bias_gelu")
    arithmetic = Arithmetic.of(FP32, contracts.get("cancelling"), "cpu")
    inputs = (X.reshape(1, -1), torch.zeros(X.numel()))
    exact = operator.forward(inputs, "erf", arithmetic)
    right = forms.erf(X)
    found = set()
    for name, actual in {**controls(right), "sound is rejected": right}.items():
        part = module.judged(actual.reshape(1, -1), exact, FP32, contracts.get("cancelling"), name)
        if (part.told() is None) != (name == "sound is rejected"):
            found.add(name)
    return found


def test_no_control_passes_the_bound():
    assert accepted_by(ratios) == set()


@pytest.mark.parametrize(
    ("old", "new", "shows"),
    [
        ("within = (error <= allowed)", "within = ~(error > allowed)", "one nan"),
        ("within = (error <= allowed)", "within = (error <= 1e9 * allowed)", "doubled"),
        (
            "error = (got - y).abs()",
            "error = (got / got.abs().max() * y.abs().max() - y).abs()",
            "doubled",
        ),
        ("broken = torch.where(closed, ~within, wrong)", "broken = wrong", "one wrong"),
    ],
)
def test_planted_fault_of_the_bound_is_noticed(old, new, shows):
    assert shows in accepted_by(copy(ratios, old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "    if result.status.holds:\n        return Fate.SURVIVED\n",
            "",
        ),
        (
            "Fate.OTHER_REASON if missing else Fate.KILLED",
            "Fate.KILLED",
        ),
        ("words in f", "True or words in f"),
        ("Fate.FLAGGED if alarms", "Fate.FLAGGED if len(alarms) > 1"),
    ],
)
def test_planted_fault_of_the_selftest_is_noticed(old, new):
    def fates(module):
        stated = finding("accuracy", "failed", "collapse")
        other = finding("accuracy", "failed", "overflow")
        defect, sound = loses_the_tail.entry, is_right.entry
        runs = [result("failed", stated), result("failed", other), result("passed")]
        found = [module.of_defect(defect, run, usual(passes=True)).fate for run in runs]
        return [*found, module.of_sound(sound, [runs[1]], usual(passes=True)).fate]

    right = [Fate.KILLED, Fate.OTHER_REASON, Fate.SURVIVED, Fate.FLAGGED]
    assert fates(verdict) == right
    assert fates(copy(verdict, old, new)) != right
