"""Command line: make, check or verify the certificate of the fast reference."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gelu_verify.errors import GeluVerifyError, UsageError, unknown_name
from gelu_verify.reference.certificate.status import FUNCTIONS, PATH, REMEDY, status

_PROGRAM = "python -m gelu_verify.reference.certificate"
#: Where ledgers are, one a run, relative to the current folder; git ignores build/.
_FOLDER = Path("build")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit status (1: uncertified, 2: wrong usage)."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except GeluVerifyError as error:
        print(error, file=sys.stderr)
        return error.exit_status


def _make(options: argparse.Namespace) -> int:
    from gelu_verify.ledger import Ledger, key_digest
    from gelu_verify.reference.certificate import record, run

    if options.workers < 1:
        raise UsageError(f"--workers: got {options.workers}, expected at least 1. Try 2.")
    shards = run.all_shards(_functions(options.function))
    if options.zone:
        known = sorted({shard.zone for shard in shards})
        for name in options.zone:
            if name not in known:
                raise unknown_name("zone", name, known)
        shards = [shard for shard in shards if shard.zone in options.zone]
    key = run.run_key()
    path = options.ledger or _FOLDER / f"certificate-{key_digest(key)}.sqlite"
    with Ledger(path, key) as ledger:
        run.work(shards, ledger, options.workers, _show)
        document = record.certificate(run.finished(ledger), ledger.started)
    record.write(document, options.output)
    return _report(options.output)


def _check(options: argparse.Namespace) -> int:
    from gelu_verify.reference.certificate import run, verify

    path = options.certificate
    if status(path).certified and verify.read(path)["coefficients_hash"] != run.table_hash():
        print(f"uncertified: the coefficients differ from those of the certificate. {REMEDY}")
        return 1
    return _report(path)


def _verify(options: argparse.Namespace) -> int:
    from gelu_verify.reference.certificate import verify

    if options.slice < 1:
        raise UsageError(f"--slice: got {options.slice}, expected at least 1. Give more blocks.")
    document = verify.read(options.certificate)
    result = verify.verify(document, options.slice, options.seed)
    against = "zone maxima and bounds" if result.compared else "bounds (another environment)"
    print(f"seed {options.seed}: {result.count} inputs recomputed, within {against}")
    for name, error in result.worst.items():
        print(f"{name:10} {error:.4f}·2^-53")
    return 0


def _report(path: Path) -> int:
    found = status(path)
    print(found.reason)
    if not found.certified:
        return 1
    for name, error in found.max_error_units.items():
        print(f"{name:10} {error:.4f}·2^-53")
    return 0


def _functions(names: list[str] | None) -> list[tuple[str, int]]:
    for name in names or ():
        if name not in FUNCTIONS:
            raise unknown_name("function", name, FUNCTIONS)
    pairs = (name.split(":") for name in names or FUNCTIONS)
    return [(formula, int(order)) for formula, order in pairs]


def _show(done: int, total: int) -> None:
    end = "\n" if done == total else ""
    print(f"\r{done} of {total} shards", end=end, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_PROGRAM, description=__doc__)
    commands = parser.add_subparsers(required=True)
    make = commands.add_parser("make", help="compare every input, resume where a run stopped")
    make.add_argument("--workers", type=int, default=2, metavar="N", help="processes")
    make.add_argument("--ledger", type=Path, metavar="FILE", help="default: in build/")
    make.add_argument("--function", action="append", metavar="NAME", help=", ".join(FUNCTIONS))
    make.add_argument("--zone", action="append", metavar="NAME", help="only this zone")
    make.add_argument("--output", type=Path, default=PATH, metavar="FILE")
    make.set_defaults(command=_make)
    check = commands.add_parser("check", help="exit 1 unless the source is certified")
    check.set_defaults(command=_check)
    verify = commands.add_parser("verify", help="recompute random blocks")
    verify.add_argument("--slice", type=int, default=600, metavar="N", help="blocks")
    verify.add_argument("--seed", type=int, default=0)
    verify.set_defaults(command=_verify)
    for parser_ in (check, verify):
        parser_.add_argument("--certificate", type=Path, default=PATH, metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
