"""The compiled engine says what the torch pass says, and its exact values are within the bound."""

import json
from itertools import pairwise

import mpmath
import numpy as np
import pytest

pytest.importorskip("numba", reason="the compiled loops are an extra")

from gelu_verify.contracts import BUILT_IN
from gelu_verify.exhaustive import cpu_reference, transport
from gelu_verify.exhaustive.settled import _LEVELS
from gelu_verify.reference import fast, oracle
from tests import faulty_kernels
from tests.exhaustive.passes import (
    FAULTY,
    FUNCTIONS,
    SIGN,
    SOUND,
    borders,
    census,
    cpu_engine,
    different,
    flushes,
    nan_far_out,
    rounded_argument,
)

CASES = [
    *((SOUND[formula], formula, derivative) for formula, derivative in FUNCTIONS),
    # Another formula than the declared one: errors beyond 4 ULP everywhere.
    *((SOUND["erf"], formula, derivative) for formula, derivative in FUNCTIONS[2:]),
    *((kernel, "erf", derivative) for kernel in FAULTY for derivative in (0, 1)),
    *((k, "erf", 0) for k in (faulty_kernels.guarded, flushes, nan_far_out)),
    (flushes, "erf", 1),
]


@pytest.mark.parametrize(("kernel", "formula", "derivative"), CASES)
def test_cpu_engine_equals_the_torch_engine(kernel, formula, derivative):
    around = [
        (b if b == SIGN else max(b - 200, 0), b + 200)
        for b in borders(formula, derivative)
        if b < 2**32 - 200
    ]
    parts = [(0, 200), *around, (0xC0A80000, 0xC0A80800), (0xBF408000, 0xBF408400)]
    assert not different(kernel, formula, derivative, parts, cpu_engine)


@pytest.mark.parametrize("contract", ["correctly_rounded", "saturating", "approximation"])
def test_cpu_engine_equals_the_torch_engine_for_another_contract(contract):
    parts = [(b - 200, b + 200) for b in borders("erf", 0) if b > 0xBF800000]
    for kernel in (SOUND["erf"], SOUND["tanh"], FAULTY[-1]):
        assert not different(kernel, "erf", 0, parts[:-2], cpu_engine, contract)


FAR_LEFT = [0xC0CFFF00, 0xC0E00000, 0xC1155500, 0xC1500000, 0xC164FF00, 0xC2000000]


@pytest.mark.parametrize("formula", ["erf", "tanh", "sigmoid"])
def test_cpu_engine_explains_a_rounded_argument_as_the_judge_does(formula):
    parts = [(start, start + 0x400) for start in FAR_LEFT]
    assert not different(rounded_argument, formula, 0, parts, cpu_engine)


def test_census_is_the_same_when_calls_are_split():
    whole, parts = (0xC0A00000, 0xC0A02000), [0xC0A00000, 0xC0A00401, 0xC0A01FFF, 0xC0A02000]
    split = list(pairwise(parts))
    one, other = (
        transport.dumps(census(faulty_kernels.guarded, "erf", 0, ranges, engine=cpu_engine))
        for ranges in ([whole], split)
    )
    assert json.loads(one) == json.loads(other)


@pytest.mark.parametrize(("formula", "derivative"), FUNCTIONS)
def test_compiled_reference_is_within_its_bound(formula, derivative):
    generator = np.random.default_rng(7)
    zero = float(-oracle.minimum(formula)[0])
    xs = np.concatenate(
        [
            [2.0**-12, 1.0, -1.0, 6.0, -6.0, zero, -zero, -13.0, 13.0],
            generator.uniform(-14.0, 6.0, 150),
            -np.exp2(generator.uniform(-12.0, 3.5, 50)),
        ]
    ).astype(np.float32)
    x = xs.astype(np.float64)
    got, room = np.empty_like(x), np.empty_like(x)
    code = cpu_reference.FORMULAS[formula]
    table = cpu_reference.table(formula, derivative)
    cpu_reference.full(x, code, derivative, table, room, got)
    bound = fast.RELATIVE_ERROR_BOUND[formula, derivative] * 2.0**-53
    for value, number in zip(x.tolist(), got.tolist(), strict=True):
        true = oracle.value(formula, value, derivative=derivative, bits=160)
        with mpmath.workprec(160):
            assert abs(mpmath.mpf(number) / true - 1) <= bound, value


def test_each_built_in_contract_of_4_ulp_permits_one_more_reason():
    # What the sets of the figures rest on.
    by_name = {contract.name: contract for contract in BUILT_IN}
    last = by_name[_LEVELS[-1]].allowances
    assert [c.name for c in BUILT_IN if c.max_error_ulp == 4.0] == list(_LEVELS)
    assert [by_name[name].allowances for name in _LEVELS] == [last[:n] for n in range(4)]
    assert [c.max_error_ulp for c in BUILT_IN if c.name not in _LEVELS] == [0.5, 1 - 2.0**-53]
