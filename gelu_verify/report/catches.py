"""What the checks catch, kind by kind, for people who bring their own kernel."""

from __future__ import annotations

from collections.abc import Sequence

from gelu_verify.report.markdown import escape, link
from gelu_verify.selftest.entry import Defect, Kind

_HEAD = """# What this catches

Every row is a kernel of the catalogue (`reference_kernels/defects/`) with that one fault, modelled
on a public report. `gelu-verify selftest` runs them all and fails unless each is rejected by the
check named here; what it measured is in [reports/selftest](../reports/selftest). *Unit normals*
says why `assert_close(kernel, eager, atol=1e-3, rtol=1e-3)` on unit normals lets the fault pass;
where it says nothing that test finds the fault as well.

This page is generated from the catalogue (`make selftest`).
"""


def page(defects: Sequence[Defect]) -> str:
    """Return the page as Markdown."""
    lines = [_HEAD]
    for kind in Kind:
        members = [entry for entry in defects if entry.kind is kind]
        if not members:
            continue
        lines += [f"## {kind.value.capitalize()}", ""]
        lines += ["| fault | operator | formats | found by | unit normals | report |"]
        lines += ["|" + " --- |" * 6, *map(_row, members), ""]
    return "\n".join(lines)


def _row(entry: Defect) -> str:
    checks = ", ".join(f"`{check}`" for check in entry.rejected_by)
    operator = entry.operator + (" through autograd" if entry.gradient == "only" else "")
    cells = (
        escape(entry.summary),
        escape(operator),
        ", ".join(entry.formats),
        checks,
        escape(entry.unseen_because) or "-",
        link(entry.report),
    )
    return "| " + " | ".join(cells) + " |"
