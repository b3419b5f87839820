"""Figures as files."""

import pytest

from gelu_verify.errors import UsageError
from gelu_verify.report import files
from gelu_verify.report.site import images
from gelu_verify.report.site.content import Content
from gelu_verify.report.site.entry import Entry
from tests.report.site.conftest import REPORTS

pytest.importorskip("matplotlib", reason="the extra report is missing")


@pytest.mark.parametrize(("name", "kind"), [("exhaustive_fp32", "svg"), ("fused", "png")])
def test_every_figure_becomes_a_file_of_its_kind(tmp_path, monkeypatch, name, kind):
    results = files.read(REPORTS / "cpu" / f"{name}.json")
    result = next(k for k in results.kernels if k.name in ("torch-erf", "cpp-linear-gelu"))
    # Those with the most parts: two panels, stacked bars, a band, a logarithmic axis.
    real, few = images.pages.figures, {"svg": ("error", "tail"), "png": ("terms", "ladder")}[kind]
    result = result.model_copy(update={"name": "cost $5 <b>"})
    entry = Entry(result, results.environment, "f.json", "slug", None, None)
    monkeypatch.setattr(images.pages, "figures", lambda e: [f for f in real(e) if f.key in few])
    count = images.write(Content(entries=[entry]), tmp_path / "figures", kind)
    written = sorted((tmp_path / "figures").iterdir())
    assert len(written) == count == 2
    start = b"<?xml" if kind == "svg" else b"\x89PNG"
    assert all(path.read_bytes().startswith(start) for path in written)


def test_another_kind_is_refused():
    images.require_known(None)
    with pytest.raises(UsageError, match="expected one of png, svg"):
        images.require_known("gif")
