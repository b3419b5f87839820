from pathlib import Path

import pytest
import xmlschema

from gelu_verify.report import junit
from tests.report.gates import broken, gate, passed

SCHEMA = xmlschema.XMLSchema(Path(__file__).parents[1] / "data" / "junit.xsd")


@pytest.mark.parametrize("results", [broken(), passed(), gate(())], ids=["broken", "ok", "empty"])
def test_document_is_valid(results):
    SCHEMA.validate(junit.text(results))


def test_schema_refuses_what_is_no_junit():
    text = junit.text(passed())
    for wrong in (text.replace("testcase", "case"), text.replace(' name="contracts"', "")):
        with pytest.raises(xmlschema.XMLSchemaException):
            SCHEMA.validate(wrong)


def test_counts_and_texts_are_those_of_the_gate():
    found = SCHEMA.to_dict(junit.text(broken()))
    contracts, baselines = found["testsuite"]
    assert [contracts[f"@{n}"] for n in ("tests", "failures", "errors", "skipped")] == [5, 2, 1, 1]
    assert [baselines[f"@{n}"] for n in ("tests", "failures", "errors", "skipped")] == [5, 2, 0, 2]
    failed = next(c for c in contracts["testcase"] if "failure" in c)
    assert failed["@classname"] == "k.py:f"
    (failure,) = failed["failure"]
    assert "at: x = -8.625 (0xC10A)" in failure["$"]
    assert "reproduce: gelu-verify check k.py:f --input 0xC10A" in failure["$"]
    assert failure["@type"] == "failed"
