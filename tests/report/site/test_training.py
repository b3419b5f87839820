"""Trainings: their page, their figures."""

import html
import math
import re
from urllib.parse import unquote

import pytest

from gelu_verify.baseline import Folder
from gelu_verify.convergence import verdict
from gelu_verify.convergence.records import Arm, Convergence, Verdict
from gelu_verify.errors import UsageError
from gelu_verify.records import Environment
from gelu_verify.report import files
from gelu_verify.report.site import content, images, pages
from gelu_verify.report.site.figures import convergence as figures
from tests.convergence.runs import experiment
from tests.report.site.conftest import MARKUP

pytest.importorskip("jinja2", reason="the extra report is missing")

WHERE = Environment(
    gelu_verify="1",
    commit=None,
    dirty=None,
    date="2026-01-01",
    python="3.12",
    platform="-",
    processor="a processor",
    libraries={"torch": "2.11"},
)


def record(runs, name="kernel", **fields):
    decided = vars(verdict.decide(runs, 0.05)) if runs else {}
    asked = {"environment": WHERE, "name": name, "target": "m:f", "backward": None, "alpha": 0.05,
             "operator": "gelu", "formula": "erf", "format": "fp32", "autocast": None,
             "device": "cpu", "task": "a task", "seeds": sorted({seed for _, seed in runs}),
             "runs": list(runs.values())}  # fmt: skip
    return Convergence.model_validate({**asked, **decided, **fields})


@pytest.fixture
def folder(tmp_path):
    """Two files of trainings, one of a kernel that ended its process."""
    (tmp_path / "a.json").write_text(record(experiment(0.1, jitter=0.01), MARKUP).model_dump_json())
    ended = record({}, verdict=Verdict.CRASHED, reasons=["kernel, seed 0: it was killed"])
    (tmp_path / "b.json").write_text(ended.model_dump_json())
    return tmp_path


def read(folder):
    return content.read(sorted(folder.glob("*.json")), Folder(folder / "none"))


def test_the_table_has_a_row_for_every_record_and_leads_to_its_page(folder):
    assert pages.write(read(folder), folder / "site") == 5  # with the index and the comparison
    text = (folder / "site" / "training.html").read_text()
    assert text.count("<tr data-operator") == 2
    assert 'class="status failed">different<' in text
    assert 'class="status crashed">crashed<' in text
    names = re.findall(r'href="(trainings/[^"]+)"', text)
    assert len(set(names)) == 2
    assert all((folder / "site" / unquote(name)).exists() for name in names)
    assert "<img src=x" not in text
    largest = max(abs(e.mean) / e.margin for e in record(experiment(0.1, jitter=0.01)).endpoints)
    assert f'data-value="{largest}"' in text


def test_the_page_of_a_record_has_verdict_reasons_and_figures(folder):
    pages.write(read(folder), folder / "site")
    every = [path.read_text() for path in (folder / "site" / "trainings").iterdir()]
    text = "".join(every)
    assert 'class="status failed">different<' in text
    assert 'class="status crashed">crashed</span> kernel, seed 0: it was killed' in text
    assert all('href="../training.html">Training<' in page for page in every)
    assert "final loss: differs by +0.1" in text
    assert text.count("<figure ") == 3
    assert "<img src=x" not in text
    assert html.escape("<b>bold</b>") in text
    assert 'href="training.html">Training<' in (folder / "site" / "index.html").read_text()


def test_the_figures_become_files(folder):
    pytest.importorskip("matplotlib", reason="the extra report is missing")
    assert images.write(read(folder), folder / "figures", "svg") == 3
    written = {path.name for path in (folder / "figures").iterdir()}
    kinds = ("losses", "differences", "gradients")
    assert {name.rpartition(".")[0].rpartition(".")[2] for name in written} == set(kinds)
    assert len(written) == 3


def test_losses_have_a_band_from_the_smallest_to_the_largest_seed():
    drawn = figures.losses(record(experiment(0.5, seeds=3)))
    low, high, mean = [t for t in drawn.data if t["meta"] == "mean"]
    assert low["y"] == pytest.approx([2.0, 1.5])
    assert high["y"] == pytest.approx([2.0, 1.7])
    assert mean["y"] == pytest.approx([2.0, 1.6])
    assert mean["name"] == "kernel"


def test_losses_that_are_no_numbers_are_not_drawn():
    runs = experiment(0.0, seeds=3)
    lost = runs[Arm.KERNEL, 1].model_copy(
        update={"losses": (2.0, math.nan), "first_nonfinite": 100}
    )
    drawn = figures.losses(record(runs | {(Arm.KERNEL, 1): lost}))
    mean = [t for t in drawn.data if t["meta"] == "mean"][-1]
    assert mean["y"] == pytest.approx([2.0, 1.1])  # of 1.0 and 1.2


def test_differences_are_in_margins_and_stay_on_the_axis():
    found = record(experiment(0.1, jitter=0.01))
    drawn = figures.differences(found)
    margin = next(e.margin for e in found.endpoints if e.name == "final loss")
    kernel = next(t for t in drawn.data if t["name"] == "kernel")
    at = [x for x, y in zip(kernel["x"], kernel["y"], strict=True) if y == "final loss"]
    assert at[0] == pytest.approx((0.1 + 0.01) / margin)
    assert all(abs(x) <= 3.0 for t in drawn.data for x in t["x"])
    assert [line["x0"] for line in drawn.layout["shapes"]] == [-1.0, 1.0]


def test_gradients_are_drawn_beside_their_margin():
    found = record(experiment(0.0, error=0.2))
    drawn = figures.gradients(found)
    margin = next(e.margin for e in found.endpoints if e.name == "gradient error")
    assert drawn.layout["shapes"][0]["y0"] == margin == pytest.approx(0.05)
    assert [t["y"] for t in drawn.data if t["meta"] == "mean"][-1] == pytest.approx([0.2, 0.2])


def test_a_record_that_was_altered_is_refused(folder):
    text = (folder / "a.json").read_text().replace('"alpha"', '"omega"')
    (folder / "a.json").write_text(text)
    with pytest.raises(UsageError, match="not a results file"):
        files.read(folder / "a.json", Convergence)
