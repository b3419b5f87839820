"""Loading: every kind of name, and one clear line for every bad one."""

import sys
from pathlib import Path

import pytest
import torch

from gelu_verify.errors import UnavailableError, UsageError
from gelu_verify.kernels import loading, registry
from gelu_verify.kernels.spec import KernelSpec

ONE = torch.tensor([1.0])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def _write(folder, text, name="k.py"):
    path = folder / name
    path.write_text(text)
    return str(path)


def _load(name, arguments=("x",)):
    return loading.load(registry.find(name), arguments)


@pytest.mark.parametrize(
    "name",
    ["torch-erf", "torch.nn.functional:gelu", "reference_kernels.torch_eager:gelu",
     "torch.ops.aten.gelu", "torch.ops.aten.gelu.default"],
)  # fmt: skip
def test_function_is_found_when_the_name_is_good(name):
    # Φ(1) = 0.8413447460685429
    assert float(_load(name)(ONE)) == pytest.approx(0.8413447460685429, rel=1e-6)


def test_function_is_found_when_it_is_in_a_file(folder):
    _write(folder, "FACTOR = 2.0\ndef helper(x):\n    return x * FACTOR\n", "helper_mod.py")
    path = _write(folder, "def gelu(x):\n    import helper_mod\n    return helper_mod.helper(x)\n")
    assert float(_load(f"{path}:gelu")(ONE)) == 2.0
    assert float(_load("k.py:gelu")(ONE)) == 2.0


def test_function_is_found_when_its_module_is_in_the_current_folder(folder):
    _write(folder, "class A:\n    @staticmethod\n    def f(x):\n        return x\n", "my_mod_a.py")
    assert _load("my_mod_a:A.f")(ONE) is ONE


def test_file_runs_once_when_two_formats_load_it(folder):
    text = "from pathlib import Path\nwith open('ran', 'a') as f: f.write('x')\ndef f(x): return x"
    path = _write(folder, text)
    assert _load(f"{path}:f") is _load(f"{path}:f")
    assert (folder / "ran").read_text() == "x"


def test_file_of_this_folder_is_run_when_another_had_the_same_name(folder, monkeypatch):
    for name in ("one", "two"):
        (folder / name).mkdir()
        _write(folder / name, f"def {name}(x): return x")
        monkeypatch.chdir(folder / name)
        assert _load(f"k.py:{name}")(ONE) is ONE


def test_folder_may_hold_spaces_and_quotes_when_a_file_is_named(folder):
    place = folder / "it's a [bold]place"
    place.mkdir()
    path = _write(place, "def f(x): return x")
    assert _load(f"{path}:f")(ONE) is ONE


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("def f(x) return x", "f", ("SyntaxError", "line 1", "python ")),
        ("import nothing_like_this_xyz", "f", ("ModuleNotFoundError", "nothing_like_this_xyz")),
        ("1/0", "f", ("ZeroDivisionError", "division by zero", "expected it to import")),
        ("raise SystemExit(0)", "f", ("SystemExit",)),
        ("raise ValueError('a\\nb')", "f", ("ValueError", "(a b)")),
        ("def gelu(x): return x\ndef _g(): pass", "f", ("nothing of that name", "has: gelu.")),
        ("f = 3", "f", ("got int, expected a function", "no public function")),
        ("def f(): pass", "f", ("got signature ()", "called as (x)", "--operator")),
        ("def f(x, y): pass", "f", ("got signature (x, y)", "called as (x)")),
        ("def f(*, x): pass", "f", ("got signature (*, x)",)),
    ],
)
def test_one_line_says_what_is_wrong_when_a_file_is_bad(folder, text, name, words):
    path = _write(folder, text)
    with pytest.raises(UsageError) as caught:
        _load(f"{path}:{name}")
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere.py:f", ("kernel file: got nowhere.py", "existing .py file")),
        ("nothing_xyz:f", ("ModuleNotFoundError", "python -c 'import nothing_xyz'")),
        (".relative:f", ("on import",)),
        ("torch.ops.aten", ("expected a registered torch operator",)),
        ("torch.ops.aten.", ("expected a registered torch operator",)),
        ("torch.ops.aten.gelou", ("expected a registered torch operator",)),
        ("torch.ops.mine.gelu", ("Import the module that registers it",)),
        ("math:pi", ("got float, expected a function",)),
    ],
)
def test_one_line_says_what_is_wrong_when_a_name_is_bad(folder, name, words):
    with pytest.raises(UsageError) as caught:
        _load(name)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_kernel_is_unavailable_when_a_registered_one_misses_a_library():
    spec = KernelSpec(name="k", target="nothing_xyz:f", registered=True)
    with pytest.raises(UnavailableError, match="kernel k: No module named 'nothing_xyz'"):
        loading.load(spec, ("x",))


def test_optional_arguments_are_allowed_when_the_rest_fits(folder):
    path = _write(folder, "def f(x, approximate='none', *more): return x")
    assert Path(path).is_file()
    assert _load(f"{path}:f")(ONE) is ONE
