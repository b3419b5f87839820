"""The registry: names and what is guessed from them."""

import pytest

from gelu_verify import operators
from gelu_verify.contracts import get
from gelu_verify.errors import UsageError
from gelu_verify.kernels import registry


def test_registered_kernels_are_consistent_when_read():
    for name, spec in registry.registered().items():
        assert spec.name == name
        assert spec.registered
        assert get(spec.contract)
        assert operators.require(spec.operator) == spec.operator
        assert operators.require_formula(spec.formula) == spec.formula


def test_declaration_is_used_when_a_registered_target_is_named():
    found = registry.find("reference_kernels.torch_eager:gelu_tanh")
    assert (found.name, found.formula) == ("torch-tanh", "tanh")


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("m:gelu", "gelu"),
        ("m:gelu_backward", "gelu_backward"),
        ("a.b:Class.backward", "gelu_backward"),
        ("torch.ops.aten.gelu_backward", "gelu_backward"),
        ("torch.ops.aten.gelu", "gelu"),
        ("m:linear_gelu", "linear_gelu"),
        ("k.m:Kernels.linear_gelu_tanh", "linear_gelu"),
        ("m:fast_geglu", "geglu"),
        ("m:bias_gelu", "bias_gelu"),
        ("m:activation", "gelu"),
    ],
)
def test_operator_is_guessed_when_a_name_is_new(name, operator):
    found = registry.find(name)
    assert found.operator == operator
    assert (found.name, found.target, found.registered) == (name, name, False)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("torch-erff", ("got 'torch-erff'", "Did you mean torch-erf?")),
        ("nothing", ("module:function, path/to/file.py:function or torch.ops.namespace.name",)),
        ("", ("got ''",)),
        (":f", ("got ':f'",)),
        ("m:", ("got 'm:'",)),
        ("m:1f", ("got 'm:1f'",)),
        ("k.py", ("expected path/to/file.py:function. Add ':' and the function.",)),
        ("k.py:", ("expected path/to/file.py:function",)),
        ("k.py:my-gelu", ("expected path/to/file.py:function",)),
        ("missing.py:f", ("kernel file: got missing.py",)),
    ],
)
def test_usage_error_helps_when_a_name_is_bad(name, words):
    with pytest.raises(UsageError) as caught:
        registry.find(name)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)
