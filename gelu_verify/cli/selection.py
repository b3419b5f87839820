"""The kernels of ``check --all``: registered ones, in those of the wanted formats they declare."""

from __future__ import annotations

import typer

from gelu_verify import formats
from gelu_verify.errors import UsageError
from gelu_verify.kernels.registry import registered
from gelu_verify.operators import require


def declared(
    operator: str | None, format_names: tuple[str, ...]
) -> list[tuple[str, tuple[str, ...]]]:
    """Return the kernels of an operator (of all for None) with the formats to check each in.

    No format means all that a kernel declares. A kernel that declares none of those given is left
    out, and one line on stderr says how many are. Raises :class:`UsageError` if no kernel is left.
    """
    wanted = None if operator is None else require(operator)
    asked = tuple(formats.get(name.strip()).name for name in format_names)
    found = {
        name: tuple(fmt for fmt in asked or spec.formats if fmt in spec.formats)
        for name, spec in registered().items()
        if wanted in (None, spec.operator)
    }
    left_out = [name for name, own in found.items() if not own]
    if len(left_out) == len(found):
        of = f" for {wanted}" if wanted else ""
        raise UsageError(
            f"kernel: got none registered{of} in {', '.join(asked) or 'any format'}, expected at "
            "least one. Name one: by name it is checked in any format."
        )
    if left_out:
        named = ", ".join(left_out[:3]) + (", ..." if len(left_out) > 3 else "")
        typer.echo(
            f"Left out {len(left_out)} of {len(found)} kernels, which do not declare "
            f"{', '.join(asked)}: {named}.",
            err=True,
        )
    return [(name, own) for name, own in found.items() if own]
