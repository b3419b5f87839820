"""The source that a certificate stands for, as a hash that comments and docstrings do not change.

Hashed: ``fast.py``, ``tails.py`` and ``coefficients.py`` of :mod:`gelu_verify.reference`, the whole
arithmetic of the fast reference. Left out: comments, docstrings, blank lines and spaces at the end
of lines. Everything else counts, layout too: reformatting the code asks for a new certificate,
which errs on the safe side. The rule works on the text, not on an AST dump, whose form changes from
one Python version to the next. The coefficients also depend on the oracle and on mpmath; their
values have a hash of their own (:func:`gelu_verify.reference.certificate.run.table_hash`).
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent
FILES = ("fast.py", "tails.py", "coefficients.py")


@cache
def source_hash(folder: Path = FOLDER) -> str:
    """Return the SHA-256 of the normalised source, 64 hex digits."""
    digest = hashlib.sha256()
    for name in FILES:
        text = normalised((folder / name).read_text(encoding="utf-8"))
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()


def normalised(text: str) -> str:
    """Return Python source without comments, docstrings, blank lines and trailing spaces."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for first, last in _docstrings(text):
        lines[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _docstrings(text: str) -> list[tuple[int, int]]:
    """Return (first, last) line numbers of every docstring that has its lines to itself."""
    spans = []
    lines = text.encode().splitlines()
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, kinds) or ast.get_docstring(node, clean=False) is None:
            continue
        string = node.body[0]
        last = string.end_lineno or string.lineno
        before = lines[string.lineno - 1][: string.col_offset]
        after = lines[last - 1][string.end_col_offset :]
        if not before.strip() and not after.strip():
            spans.append((string.lineno, last))
    return spans
