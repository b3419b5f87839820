"""A gate on GitHub Actions: annotations beside the code, and the summary of the job.

Workflow commands: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

from gelu_verify.campaign.key import origin
from gelu_verify.errors import UsageError
from gelu_verify.gate.record import GateResults
from gelu_verify.report import gate


def is_here() -> bool:
    """Tell whether this process runs in a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def commands(results: GateResults, config: Path) -> list[str]:
    """Return a workflow command for each failure, and one for each kind of warning.

    config: where a failure is shown whose kernel has no source here.
    """
    lines = []
    for failure in gate.failures(results):
        file, line = _source(failure.target) or (config, 1)
        place = {
            "file": _relative(file),
            "line": str(line),
            "title": f"gelu_verify: {failure.what}",
        }
        lines.append(command("error", "\n".join(failure.lines()), place))
    for note in gate.notes(results):
        lines.append(command("warning", note, {"title": "gelu_verify"}))
    return lines


def command(name: str, message: str, properties: dict[str, str]) -> str:
    """Return a workflow command; nothing in its parts can end it or begin another."""
    shown = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {shown}::{_data(message)}"


def append_summary(text: str) -> None:
    """Add Markdown to the summary of the job, where the job has one."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(
            f"summary: got GITHUB_STEP_SUMMARY={path}, {error.strerror}. Unset it."
        ) from None


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _relative(file: Path) -> str:
    """Return a path as GitHub knows it: from the root of the checkout."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
    resolved = file.resolve()
    inside = resolved.is_relative_to(root.resolve())
    return (resolved.relative_to(root.resolve()) if inside else file).as_posix()


def _source(target: str) -> tuple[Path, int] | None:
    """Return the file of a kernel and the line where its function begins, without importing it."""
    source, _, function = target.rpartition(":")
    if not source or target.startswith("torch.ops."):
        return None
    file = Path(source) if source.endswith(".py") else origin(source)
    if file is None or file.suffix != ".py" or not file.is_file():
        return None
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError, OSError):
        return file, 1
    name = function.rpartition(".")[2]
    kinds = (ast.FunctionDef, ast.ClassDef)
    found = (n.lineno for n in ast.walk(tree) if isinstance(n, kinds) and n.name == name)
    return file, next(found, 1)
