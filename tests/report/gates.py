"""A gate in which everything that can happen has happened."""

from gelu_verify.baseline import Key
from gelu_verify.gate.record import Against, Compared, GateResults
from gelu_verify.records import Status
from tests.builders import environment, finding, measured, result

NASTY = "bad\x00 %0A::error::\r\n<&>'\"|`[x](y) ]]> é"


def key(name="k.py:f"):
    return Key(kernel=name, operator="gelu", formula="erf", format="bf16")


def compared(verdict, name="k.py:f", **more):
    fields = {"key": key(name), "operator": "gelu", "device": "cpu", "device_class": "cpu-avx2",
              "verdict": verdict, "message": f"this is {verdict.value}"}  # fmt: skip
    return Compared(**fields | more)


def passed():
    return gate((measured(),), (compared(Against.HELD),))


def gate(kernels, compared=(), replayed=(), **more):
    return GateResults(
        environment=environment(), kernels=kernels, compared=compared, replayed=replayed,
        profile="ci", seed=7, seconds=1.5, **more,
    )  # fmt: skip


def broken():
    accuracy = finding(
        "accuracy", "failed", "3 of 65,536 inputs break cancelling; worst 9.5 ULP",
        input="x = -8.625 (0xC10A)", reproduce="gelu-verify check k.py:f --input 0xC10A",
    )  # fmt: skip
    bad = measured(name="k.py:f", target="k.py:f")
    bad = bad.model_copy(update={"status": Status.FAILED, "findings": (accuracy,)})
    crashed = result("crashed", finding("conduct", "failed", NASTY), name="dies", special=False)
    absent = result("unavailable", finding("loading", "skipped", "no CUDA device"), name="away",
                    special=False)  # fmt: skip
    return gate(
        (bad, crashed, absent, measured(name="worse")),
        (
            compared(Against.HELD),
            compared(Against.NOT_COMPARED, "dies"),
            compared(Against.NOT_COMPARED, "away"),
            compared(
                Against.REGRESSED, "worse", facts=("tail: largest error 3 ULP, was 2 ULP",),
                worse=1, input="x = -4.5 (0xC090)", baseline="reports/baselines/worse.json",
                reproduce="gelu-verify gate --kernel worse",
                warnings=("the baseline is of torch 2.11, this is 2.12",),
            ),
            compared(Against.DISAPPEARED, "gone"),
        ),
        (bad.model_copy(update={"replayed": 2}),),
    )  # fmt: skip
