"""``gelu-verify report``: result files as a static site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gelu_verify.cli import settings

#: Where ``make verify`` writes.
_LATEST = Path("reports/latest")


def command(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RESULTS...",
            help="JSON files of check or gate. [default: reports/latest/*.json]",
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
    from gelu_verify.baseline import Folder
    from gelu_verify.config.file import load
    from gelu_verify.config.settings import Settings
    from gelu_verify.report.site import entry, images, pages

    images.require_known(figures)
    given = results or sorted(_LATEST.glob("*.json"))
    # A site can be made of a file alone, where nothing is configured.
    known = load(config) if config.is_file() else Settings()
    folder = Folder.read(Path(baselines or known.baselines))
    entries = entry.read(given, folder)
    count = pages.write(entries, output)
    typer.echo(f"{count} pages of {len(entries)} results: {output / 'index.html'}")
    if figures is not None:
        written = images.write(entries, output / "figures", figures)
        typer.echo(f"{written} figures: {output / 'figures'}")
