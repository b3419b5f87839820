"""The list of cases is fixed, and has what it says it has."""

from __future__ import annotations

import json

import pytest

from gelu_verify.errors import UsageError
from gelu_verify.inputs.problems import parse, profile, recipes, stored
from gelu_verify.inputs.problems.layouts import LAYOUTS
from gelu_verify.inputs.problems.parsing import needed
from gelu_verify.inputs.problems.shapes import EDGES, SUMS
from gelu_verify.operators import fused

LINEAR = fused.get("linear_gelu")
every_operator = pytest.mark.parametrize(
    "operator", [*map(fused.get, fused.NAMES)], ids=fused.NAMES
)
STORED = {
    "operator": "linear_gelu",
    "formula": "erf",
    "format": "bf16",
    "case": "m=3,k=5,n=7,values=indexed,layout.x=sliced,seed=9",
    "kernel": "k.py:f",
    "device": "cpu",
    "check": "bound",
    "message": "1 of 21 elements break their bound",
    "date": "2026-01-01T00:00:00+00:00",
    "versions": {"torch": "2.11"},
}


@every_operator
@pytest.mark.parametrize("depth", ["quick", "standard"])
def test_list_is_fixed_and_has_a_seed_a_case(operator, depth):
    cases = profile.cases(operator, depth)
    assert cases == profile.cases(operator, depth)
    assert len({case.seed for case in cases}) == len(cases)
    assert all(parse(str(case), operator) == case for case in cases)
    moved = profile.cases(operator, depth, seed=1000)
    assert [case.seed for case in moved] == [case.seed + 1000 for case in cases]


@every_operator
@pytest.mark.parametrize("depth", ["quick", "standard"])
def test_every_recipe_and_layout_is_tried(operator, depth):
    cases = profile.cases(operator, depth)
    ranks = [len(shape) for shape in operator.shapes(dict(cases[0].dims))]
    assert {case.values for case in cases} == set(recipes.names(operator))
    fitting = {name for name, layout in LAYOUTS.items() if layout.rank <= max(ranks)}
    assert {case.layout for case in cases} >= fitting


@every_operator
def test_every_layout_is_tried_on_every_argument_alone(operator):
    cases = profile.cases(operator, "standard")
    shapes = operator.shapes(dict(cases[0].dims))
    found = {case.special for case in cases}
    for name, shape in zip(operator.arguments, shapes, strict=True):
        for layout, one in LAYOUTS.items():
            if layout != "contiguous" and one.rank <= len(shape):
                assert ((name, layout),) in found


def test_sizes_of_linear_gelu_are_those_of_the_field():
    sizes = [dict(case.dims) for case in profile.cases(LINEAR, "standard")]
    assert {one["k"] for one in sizes} >= {*SUMS, 0}
    for name in ("m", "n"):
        assert {one[name] for one in sizes} >= {*EDGES, 0}
    assert any(one["m"] == one["n"] == one["k"] > 1 for one in sizes)
    assert any("b" in one for one in sizes)
    assert {1, 31, 32, 33, 64, 512, 513, 1024, 4096} <= set(SUMS)


@every_operator
def test_empty_arguments_are_among_the_cases(operator):
    cases = profile.cases(operator, "standard")
    assert any(0 in dict(case.dims).values() for case in cases)


@every_operator
def test_shapes_are_those_that_hurt_kernels(operator):
    sizes = [dict(case.dims) for case in profile.cases(operator, "standard")]
    shapes = [shape for one in sizes for shape in operator.shapes(one)]
    squares = {shape[0] for shape in shapes if len(shape) == 2 and shape[0] == shape[1]}
    assert operator.name == "conv_relu_pool" or {33, 64} & squares or {"l": 64, "d": 64} in sizes
    # A pool needs two places; of all else one element alone, and a last dimension of 1.
    assert operator.smallest or any(shape[-1] == 1 < shape[0] for shape in shapes if shape)
    every = {size for one in sizes for size in one.values()}
    assert every >= {1, 2, 3, 5, 7, 15, 16, 17, 31, 33} - set(operator.smallest and (15, 16, 31))
    leading = [name for name in operator.dims if name not in needed(operator)]
    assert not leading or any(one.get(leading[0], 0) > 1 for one in sizes)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports").mkdir()
    return tmp_path


def test_stored_cases_come_first_and_once(folder):
    other = STORED | {"operator": "geglu", "case": "m=3,n=5"}
    lines = [STORED, STORED | {"kernel": "other"}, other]
    stored.DEFAULT_PATH.write_text("".join(json.dumps(line) + "\n" for line in lines))
    problem = parse(STORED["case"], LINEAR)
    for depth in ("quick", "standard"):
        cases = profile.cases(LINEAR, depth)
        assert cases[0] == problem
        assert cases.count(problem) == 1
    assert profile.cases(fused.get("geglu"), "quick")[0] == parse("m=3,n=5", fused.get("geglu"))
    assert problem not in profile.cases(fused.get("geglu"), "quick")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"case": "m=3"}, "got no k, expected m, k, n"),
        ({"operator": "gelu"}, "operator: got 'gelu', expected one of"),
        ({"operator": None}, "operator"),
    ],
)
def test_line_that_is_no_case_is_named(folder, change, said):
    stored.DEFAULT_PATH.write_text(json.dumps(STORED) + "\n" + json.dumps(STORED | change) + "\n")
    with pytest.raises(UsageError, match=r"fused_cases.jsonl line 2") as caught:
        profile.cases(LINEAR, "quick")
    assert said in str(caught.value)


def test_a_case_is_stored_once(folder):
    case = stored.StoredCase(**STORED)
    assert stored.append(stored.DEFAULT_PATH, [case, case]) == 1
    assert stored.append(stored.DEFAULT_PATH, [case]) == 0
    assert stored.read(stored.DEFAULT_PATH) == [case]


@pytest.mark.parametrize("depth", ["quick", "standard"])
@pytest.mark.parametrize("name", fused.NAMES)
def test_every_depth_has_an_empty_case_and_a_batch_where_there_are_any(name, depth):
    operator = fused.get(name)
    found = [dict(problem.dims) for problem in profile.cases(operator, depth)]
    assert any(0 in dims.values() for dims in found)
    assert any("b" in dims for dims in found) == ("b" in operator.dims)
