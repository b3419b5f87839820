"""Write the JSON schemas of what is saved: ``python -m gelu_verify.report.schema``."""

from __future__ import annotations

import json
from pathlib import Path

from gelu_verify.baseline import Baseline
from gelu_verify.convergence.records import Convergence
from gelu_verify.gate.record import GateResults
from gelu_verify.records import Record, Results, SelftestResults

_FOLDER = Path(__file__).parent
#: The content of a check's JSON file, a gate's, a baseline (beside its digest), a convergence.
SCHEMAS: dict[Path, type[Record]] = {
    _FOLDER / "results.schema.json": Results,
    _FOLDER / "gate.schema.json": GateResults,
    _FOLDER / "baseline.schema.json": Baseline,
    _FOLDER / "convergence.schema.json": Convergence,
    _FOLDER / "selftest.schema.json": SelftestResults,
}


def text(model: type[Record]) -> str:
    """Return the schema of a record, keys sorted, as it is committed."""
    return json.dumps(model.model_json_schema(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    for path, model in SCHEMAS.items():
        path.write_text(text(model), encoding="utf-8")
