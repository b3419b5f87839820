"""``gelu-verify report``: result files as a static site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gelu_verify.cli import settings

if TYPE_CHECKING:
    from gelu_verify.baseline import Folder

#: Where ``make verify`` writes.
_LATEST = Path("reports/latest")


def command(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RESULTS...",
            help="Files of check, gate, selftest or converge. \\[default: reports/latest/*.json]",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write the site to.")
    ] = Path("reports/site"),
    figures: Annotated[
        str | None,
        typer.Option(help="Write the figures as files too, to DIR/figures: svg or png."),
    ] = None,
    config: settings.Config = settings.DEFAULT_PATH,
    baselines: settings.Baselines = None,
) -> None:
    """Write results as pages that open in a browser without a network.

    Example: gelu-verify report reports/cpu/check.json -o site
    """
    from gelu_verify.report.site import content, images, pages

    images.require_known(figures)
    given = results or sorted(_LATEST.glob("*.json"))
    found = content.read(given, known_baselines(config, baselines))
    count = pages.write(found, output)
    typer.echo(f"{count} pages of {len(found.entries)} results: {output / 'index.html'}")
    if figures is not None:
        written = images.write(found, output / "figures", figures)
        typer.echo(f"{written} figures: {output / 'figures'}")


def known_baselines(config: Path = settings.DEFAULT_PATH, baselines: str | None = None) -> Folder:
    """Return the baselines that results are shown against: those of the options or the defaults."""
    from gelu_verify.baseline import Folder
    from gelu_verify.config.file import load_if_there

    # A site can be made of a file alone, where nothing is configured.
    return Folder.read(Path(baselines or load_if_there(config).baselines))
