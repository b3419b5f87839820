"""A case is a line: every one can be written and read back, and a wrong one says what is wrong."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from gelu_verify import formats
from gelu_verify.errors import UsageError
from gelu_verify.formats import tensors
from gelu_verify.inputs.problems import Problem, parse
from gelu_verify.inputs.problems.parsing import needed
from gelu_verify.operators import fused
from tests import strategies

LINEAR = fused.get("linear_gelu")
every_operator = pytest.mark.parametrize(
    "operator", [*map(fused.get, fused.NAMES)], ids=fused.NAMES
)


@every_operator
def test_line_gives_the_same_case_again(operator):
    @settings(max_examples=60)
    @given(problem=strategies.problems(operator))
    def holds(problem):
        assert parse(str(problem), operator) == problem

    holds()


@every_operator
def test_inputs_have_the_shapes_and_are_the_same_every_time(operator):
    fmt, cpu = formats.get("bf16"), torch.device("cpu")

    @settings(max_examples=30)
    @given(problem=strategies.problems(operator))
    def holds(problem):
        first, second = (problem.inputs(operator, fmt, cpu) for _ in range(2))
        assert tuple(tuple(x.shape) for x in first) == operator.shapes(dict(problem.dims))
        for a, b in zip(first, second, strict=True):
            assert a.dtype is torch.bfloat16
            assert torch.equal(tensors.to_bits(a, fmt), tensors.to_bits(b, fmt))

    holds()


def test_fields_are_read():
    text = "b=2,m=33,k=64,n=17,values=indexed,layout=sliced,layout.bias=strided,seed=3"
    dims = (("b", 2), ("m", 33), ("k", 64), ("n", 17))
    expected = Problem(dims, "indexed", "sliced", 3, (("bias", "strided"),))
    assert parse(text, LINEAR) == expected
    assert parse(" m = 33, k=64 ,n=17", LINEAR) == Problem((("m", 33), ("k", 64), ("n", 17)))


def test_batches_and_heads_are_optional_where_an_operator_has_shapes_without():
    assert needed(LINEAR) == ("m", "k", "n")
    assert needed(fused.get("attention")) == ("l", "d")
    assert needed(fused.get("conv_relu_pool")) == ("n", "c", "h", "w", "o")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "got '', expected name=value. Example: m=16,k=16,n=16"),
        ("m", "got 'm', expected name=value. Example: m=16,k=16,n=16"),
        ("m=1,k=1", "got no n, expected m, k, n. Example: m=16,k=16,n=16"),
        ("m=1,k=1,n=x", "got n=x, expected a whole number from 0 to 8589934592. Example: n=64"),
        ("m=1,k=1,n=-1", "got n=-1, expected a whole number"),
        ("m=1,k=1,n=1.5", "got n=1.5, expected a whole number"),
        ("m=1,k=1,n=٣", "got n=٣, expected a whole number"),
        ("m=1,k=1,n=" + "9" * 5000, "expected a whole number"),
        (
            "m=1,k=1,n=1,seed=9223372036854775807",
            "expected a whole number from 0 to 9223372036854775806",
        ),
        ("m=9999999,k=9999999,n=1", "got x of shape (9999999, 9999999), expected at most 2^33"),
        ("m=1,k=1,n=1,m=2", "got m twice, expected it once. Drop one."),
        ("m=1,k=1,n=1,vales=normal", "Did you mean values?"),
        ("m=1,k=1,n=1,values=nromal", "Did you mean normal?"),
        ("m=1,k=1,n=1,values=high_mean", "values of linear_gelu: got 'high_mean', expected one of"),
        ("m=1,k=1,n=1,layout=slice", "Did you mean sliced?"),
        ("m=1,k=1,n=1,layout=channels_last", "expected one for at most 2 dimensions: contiguous"),
        ("m=1,k=1,n=1,layout.bias=transposed", "layout.bias: got transposed, expected one for at"),
        ("m=1,k=1,n=1,layout.baes=sliced", "Did you mean layout.bias?"),
    ],
)
def test_error_says_what_is_wrong_in_one_line(text, said):
    with pytest.raises(UsageError) as caught:
        parse(text, LINEAR)
    message = str(caught.value)
    assert said in message
    assert "\n" not in message
    assert len(message) < 600
