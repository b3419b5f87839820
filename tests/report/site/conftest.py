"""A site of records made by hand, and the browser that the system has."""

import shutil
from pathlib import Path

import pytest

from gelu_verify.baseline import Folder
from gelu_verify.report import files
from gelu_verify.report.site import content, pages
from gelu_verify.report.site.content import Content
from tests.builders import finding, measured, result, results

ROOT = Path(__file__).parents[3]
REPORTS = ROOT / "reports"
#: Operators of the site that tests open.
SHOWN = ("gelu", "gelu_backward", "geglu")
#: Markup where a name is expected: it must show as this text, and do nothing.
MARKUP = "<img src=x onerror=alert(1)><b>bold</b>\"'&amp;</script><script>alert(2)</script>"


def entries(*kernels, tmp_path, baselines=None, **environment):
    """Write results to a file and read it as the command does."""
    path = tmp_path / "results.json"
    files.write(results(*kernels, **environment), path, None)
    return content.read([path], baselines or Folder(tmp_path / "none")).entries


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of a site: real results of this project, and one named with markup."""
    folder = tmp_path_factory.mktemp("site")
    hostile = (
        measured(name=MARKUP, regions={"tail": 2.0, "centre": 0.5}),
        measured(name="second", regions={"tail": 900.0, "centre": 0.25}),
        result("failed", finding("accuracy", "failed", MARKUP, input=MARKUP, reproduce="run <this>",
                                 link="javascript:alert(3)"),
               name="broken", target=MARKUP),
    )  # fmt: skip
    path = folder / "hostile.json"
    files.write(results(*hostile, processor=MARKUP), path, None)
    real = [REPORTS / "cpu" / name for name in ("exhaustive_fp32.json", "fused.json")]
    trainings = [REPORTS / "convergence" / f"{name}.json" for name in ("triton-geglu", "saturated")]
    found = content.read([path, *real, *trainings], Folder.read(REPORTS / "baselines"))
    entries = [e for e in found.entries if e.result.operator in SHOWN]
    pages.write(Content(entries, trainings=found.trainings), folder)
    return folder


@pytest.fixture(scope="session")
def browser():
    """Chromium, headless, as the system has it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as found:
        # As root, in a container, chromium has no sandbox; it opens only the files made here.
        started = found.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()
