"""``gelu-verify list``."""

import json

from tests.cli.command import here


def test_kernels_are_json_when_asked(capsys, monkeypatch):
    kernels = json.loads(here(capsys, monkeypatch, "list", "--json").out)
    torch_erf = next(k for k in kernels if k["name"] == "torch-erf")
    assert torch_erf["formula"] == "erf"
    assert torch_erf["known_issues"][0]["link"].startswith("https://")


def test_everything_there_is_is_named_when_listed(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    done = here(capsys, monkeypatch, "list")
    assert done.status == 0
    text = " ".join(done.out.split())
    for part in ("torch-erf", "torch-tanh", "torch-sigmoid", "correctly_rounded",
                 "cancelling (default)", "gelu(x), gelu_backward(dy, x)", "erf, tanh, sigmoid",
                 "fp64, fp32, bf16, fp16, fp8_e4m3fn, fp8_e5m2"):  # fmt: skip
        assert part in text, part
    assert max(len(line.rstrip()) for line in done.out.splitlines()) <= 100
