"""How long a site takes to write and to open: 100 results, their index, and the heaviest page.

``python -m benchmarks.site_speed [RESULTS...]`` (default: the committed records, of which the 100
with the largest records are taken). Opening is measured in the system's chromium, headless: from
the start of navigation until every figure in sight is drawn, the least and the median of some runs;
the heaviest page also in a window so tall that all its figures are in sight.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gelu_verify.baseline import Folder
from gelu_verify.report.site import content, pages

_RESULTS = 100
_RUNS = 5
_TALL = 9000
#: Milliseconds since the start of navigation at which nothing in sight waits to be drawn.
_SEEN = """() => {
  const waiting = [...document.querySelectorAll(".plot")].filter((place) => {
    const box = place.getBoundingClientRect();
    return box.top < innerHeight && box.bottom > 0 && !place.querySelector(".main-svg");
  });
  return document.readyState === "complete" && !waiting.length && performance.now();
}"""


def seconds_to_open(browser: Any, page: Path, height: int = 900) -> list[float]:
    """Return the seconds from navigation until what is in sight is drawn, a number a run."""
    times = []
    for _ in range(_RUNS):
        tab = browser.new_page(viewport={"width": 1280, "height": height})
        tab.goto(page.as_uri())
        times.append(tab.wait_for_function(_SEEN).json_value() / 1e3)
        tab.close()
    return times


def committed() -> list[Path]:
    """Return the committed files of results."""
    found = [p for d in ("cpu", "h200") for p in sorted(Path("reports", d).glob("*.json"))]
    return [path for path in found if '"kernels"' in path.read_text(encoding="utf-8")]


def main() -> int:
    """Print the table; 3 without a browser."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("browser: got none, expected chromium. Run: apt-get install chromium.")
        return 3
    paths = [Path(name) for name in sys.argv[1:]] or committed()
    found = content.read(paths, Folder.read(Path("reports/baselines")))
    found.entries.sort(key=lambda e: -len(e.result.model_dump_json()))
    found.entries = found.entries[:_RESULTS]
    table = Table(title=f"A site of {len(found.entries)} results", title_justify="left")
    table.add_column("what")
    table.add_column("figure", justify="right")
    with tempfile.TemporaryDirectory() as name:
        site = Path(name)
        started = time.perf_counter(), time.process_time()
        pages.write(found, site)
        table.add_row("writing it, s", f"{time.perf_counter() - started[0]:.2f}")
        table.add_row("of these of the processor, s", f"{time.process_time() - started[1]:.2f}")
        every = sorted((site / "kernels").iterdir(), key=lambda path: path.stat().st_size)
        table.add_row("heaviest page, kB", f"{every[-1].stat().st_size / 1e3:.0f}")
        total = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
        table.add_row("all files, MB", f"{total / 1e6:.1f}")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for label, page, height in (
                ("index", site / "index.html", 900),
                ("heaviest page", every[-1], 900),
                ("heaviest page, all of it in sight", every[-1], _TALL),
                ("comparison", site / "compare.html", 900),
            ):
                times = seconds_to_open(browser, page, height)
                told = f"{min(times):.2f} / {statistics.median(times):.2f}"
                table.add_row(f"opening the {label}, s (least / median)", told)
            browser.close()
    Console(width=100).print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
