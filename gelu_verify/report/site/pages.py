"""Write a site: an index, a page a result, a comparison, and the files that all pages share."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from gelu_verify.errors import UnavailableError, UsageError
from gelu_verify.records import FindingStatus
from gelu_verify.report import files, fingerprint, rows
from gelu_verify.report.numbers import figure
from gelu_verify.report.site import matrix, table, training, words
from gelu_verify.report.site.content import Content
from gelu_verify.report.site.entry import Entry
from gelu_verify.report.site.figures import comparison, distribution, error, fused, speed, tail
from gelu_verify.report.site.figures.figure import Figure
from gelu_verify.report.site.points import named

if TYPE_CHECKING:
    import jinja2

_ASSETS = ("site.css", "site.js")
#: The order of findings: what is wrong first.
_GRAVITY = (
    FindingStatus.FAILED,
    FindingStatus.KNOWN_ISSUE,
    FindingStatus.NOTED,
    FindingStatus.SKIPPED,
    FindingStatus.PASSED,
)
#: What a site was made of, beside its index.
MANIFEST = "manifest.json"
#: The plotting library, as it lies beside the pages.
PLOTLY = "plotly.min.js"


def write(content: Content, folder: Path) -> int:
    """Write the site of some records to a folder, made if need be; return how many pages.

    Pages of an earlier site stay where no result has taken their name. Same records, same bytes.
    Raises :class:`UnavailableError` without the extra ``report``, :class:`UsageError` for a folder
    that cannot be written.
    """
    templates, plotly = _begun(folder)
    files.put(folder / "assets" / PLOTLY, plotly)
    source = resources.files(__package__) / "assets"
    for name in _ASSETS:
        files.put(folder / "assets" / name, (source / name).read_text(encoding="utf-8"))
    entries = content.entries
    trainings = training.shown(content.trainings)
    others = _others(templates, content, trainings)
    templates.globals["others"] = [(name, title) for name, (title, _) in others.items()]
    written = {"index.html": _index(templates, entries)}
    written["compare.html"] = _comparison(templates, entries)
    written |= {name: render() for name, (_, render) in others.items()}
    written |= {f"kernels/{e.slug}.html": _kernel(templates, e) for e in entries}
    record = templates.get_template("training_record.html")
    written |= {f"trainings/{t.slug}.html": record.render(one=t, root="../") for t in trainings}
    for name, text in written.items():
        files.put(folder / name, text)
    files.put(folder / MANIFEST, _manifest(content))
    return len(written)


def _others(
    templates: jinja2.Environment, content: Content, trainings: list[training.Shown]
) -> dict[str, tuple[str, Callable[[], str]]]:
    """Return the pages that only some records have: name to the title in the menu and the text."""
    found: dict[str, tuple[str, Callable[[], str]]] = {}
    if content.selftests:
        found["matrix.html"] = ("Kill matrix", lambda: _matrix(templates, content))
    if trainings:
        found["training.html"] = ("Training", lambda: _training(templates, trainings))
    return found


def _training(templates: jinja2.Environment, records: list[training.Shown]) -> str:
    choices = {
        name: sorted({getattr(one, name) for one in records})
        for name in ("operator", "format", "device", "task", "verdict")
    }
    return templates.get_template("training.html").render(records=records, choices=choices, root="")


def _matrix(templates: jinja2.Environment, content: Content) -> str:
    return templates.get_template("matrix.html").render(
        matrices=[
            (source, r.environment, matrix.conclusion(r), matrix.defects(r), matrix.sounds(r))
            for source, r in content.selftests
        ],
        tests=matrix.tests(),
        root="",
    )


def _manifest(content: Content) -> str:
    """Return what the site was made of, so that a later reader can tell whether it is still so."""
    return json.dumps({"sources": content.sources}, indent=1) + "\n"


def require_writable(folder: Path) -> None:
    """Raise now, not after a run, for what ``write`` would raise."""
    _begun(folder)


def _begun(folder: Path) -> tuple[jinja2.Environment, str]:
    """Make the folders of a site; return the templates and the plotting library."""
    templates, plotly = _templates(), _plotly()
    try:
        (folder / "kernels").mkdir(parents=True, exist_ok=True)
        (folder / "trainings").mkdir(exist_ok=True)
        (folder / "assets").mkdir(exist_ok=True)
    except OSError as fault:
        raise UsageError(f"output: got {folder}, {fault.strerror}. Choose another place.") from None
    return templates, plotly


def _templates() -> jinja2.Environment:
    try:
        import jinja2
    except ImportError:
        raise _missing("Jinja2") from None
    found = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "figure": figure, "words": _words, "signed": _signed, "breakable": _breakable
    }  # fmt: skip
    # A link of a record leads to the web or is text: never to a script.
    found.tests["web_address"] = lambda text: bool(re.match(r"https?://[^\s]+$", text or ""))
    return found


def _plotly() -> str:
    try:
        # Not plotly.offline: importing it takes longer than a page.
        script = resources.files("plotly") / "package_data" / PLOTLY
    except ImportError:
        raise _missing("plotly") from None
    return script.read_text(encoding="utf-8")


def _missing(library: str) -> UnavailableError:
    return UnavailableError(
        f"report: got no {library}, expected the extra 'report'. "
        "Run: pip install 'gelu_verify[report]'."
    )


def _words(name: str) -> str:
    return name.replace("_", " ")


def _breakable(name: str) -> str:
    """Return a name that may go on in the next line after an underscore."""
    return name.replace("_", "_\N{ZERO WIDTH SPACE}")


def _signed(number: float) -> str:
    return "-" if math.isnan(number) else f"{number:+.3g}"


def _index(templates: jinja2.Environment, entries: list[Entry]) -> str:
    shown = [table.row(entry) for entry in entries]
    counts = [
        (status, label, sum(row.status == status for row in shown))
        for status, label in rows.LABELS.items()
    ]
    return templates.get_template("index.html").render(
        rows=shown,
        regions=rows.REGION_NAMES,
        counts=[count for count in counts if count[2]],
        choices={
            name: sorted({getattr(row, name) for row in shown})
            for name in ("operator", "format", "device", "verdict")
        },
        legend=table.legend(),
        root="",
    )


def figures(entry: Entry) -> list[Figure]:
    """Return the figures of a result's page, those for which its record has what they need."""
    r, a = entry.result, entry.result.accuracy
    found = [error.against_x(r), error.by_binade(r), tail.tail(r)]
    if a:
        found += [distribution.histogram(a), distribution.cumulative(a, entry.before)]
    found += [fused.terms(r), fused.ladder(r)]
    return [one for one in found if one]


def _kernel(templates: jinja2.Environment, entry: Entry) -> str:
    r, a = entry.result, entry.result.accuracy
    found = r.fingerprint
    return templates.get_template("kernel.html").render(
        entry=entry,
        r=r,
        row=table.row(entry),
        verdict=words.verdict(r),
        change=words.change(entry),
        figures=figures(entry),
        findings=sorted(r.findings, key=lambda f: _GRAVITY.index(f.status)),
        points=named(a) if a else [],
        certificate=rows.certificate(a.certificate) if a and a.certificate else None,
        arithmetic=fingerprint.sentence(found) if found else None,
        speed=rows.speed(r.speed) if r.speed else None,
        evidence=fingerprint.evidence(found) if found else [],
        evidence_header=fingerprint.HEADER,
        quantities=fused.quantities(r),
        root="../",
    )


def _comparison(templates: jinja2.Environment, entries: list[Entry]) -> str:
    def what(entry: Entry) -> tuple[str, str]:
        return entry.result.operator, entry.result.format

    sections: list[tuple[str, str, list[Figure]]] = []
    for (operator, name), group in groupby(sorted(entries, key=what), key=what):
        members = list(group)
        number = len(sections)
        shown = [
            comparison.by_region(members, f"regions-{number}"),
            comparison.by_bound(members, f"bound-{number}"),
            speed.by_speed(members, f"speed-{number}"),
        ]
        if any(shown):
            sections.append((operator, name, [one for one in shown if one]))
    return templates.get_template("compare.html").render(sections=sections, root="")
