"""Write the JSON schemas of results and of a selftest: ``python -m gelu_verify.report.schema``."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from gelu_verify.records import Results, SelftestResults

PATH = Path(__file__).with_name("results.schema.json")
SELFTEST_PATH = Path(__file__).with_name("selftest.schema.json")


def text(model: type[BaseModel] = Results) -> str:
    """Return the schema of a record, keys sorted, as it is committed."""
    return json.dumps(model.model_json_schema(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
    SELFTEST_PATH.write_text(text(SelftestResults), encoding="utf-8")
