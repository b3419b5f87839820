"""What a user wants of the results of a run: files, a site, or what a terminal shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gelu_verify.records import Results


@dataclass(frozen=True)
class Wanted:
    """json, markdown: files, ``-`` for stdout; html: the folder of a site; each may be None."""

    json: Path | None
    markdown: Path | None
    html: Path | None

    def require_writable(self) -> None:
        """Raise now, not after the run, for what cannot be written."""
        from gelu_verify.errors import UsageError
        from gelu_verify.report import files

        if self.json is not None and self.json == self.markdown:
            raise UsageError(
                f"output: got {self.json} for --json and --markdown, expected two files."
            )
        files.require_writable(self.json)
        files.require_writable(self.markdown)
        if self.html is not None:
            from gelu_verify.report.site import pages

            pages.require_writable(self.html)

    def deliver(self, results: Results) -> None:
        """Write what was asked for; show the results where no file of them is stdout."""
        from gelu_verify.report import files

        files.write(results, self.json, self.markdown)
        if self.html is not None:
            self._write_site(results, self.html)
        if files.STDOUT not in (str(self.json), str(self.markdown)):
            from gelu_verify.report import terminal

            terminal.show(terminal.console(), results)

    def _write_site(self, results: Results, folder: Path) -> None:
        from gelu_verify.cli.report import known_baselines
        from gelu_verify.report.site import entry, pages
        from gelu_verify.report.site.content import Content

        entries = entry.of(results, "this run", known_baselines(), set())
        pages.write(Content(entries), folder)
