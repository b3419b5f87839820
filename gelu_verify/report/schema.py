"""Write the JSON schema of ``results.json``: ``python -m gelu_verify.report.schema``."""

from __future__ import annotations

import json
from pathlib import Path

from gelu_verify.records import Results

PATH = Path(__file__).with_name("results.schema.json")


def text() -> str:
    """Return the schema, keys sorted, as it is committed."""
    return json.dumps(Results.model_json_schema(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
