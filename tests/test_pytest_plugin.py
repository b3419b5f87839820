"""The plugin in a project of its own, as a user has it."""

from importlib.metadata import entry_points

import pytest
import scipy.stats  # noqa: F401

# A run of pytester in this process forgets the modules that it loads, and numpy cannot be loaded
# twice: all that it needs is there before.
from gelu_verify import pipeline  # noqa: F401
from gelu_verify.checks import comparable, examples  # noqa: F401
from gelu_verify.gate import single  # noqa: F401
from gelu_verify.report import gate  # noqa: F401

pytest_plugins = "pytester"

#: Installed, pytest finds the plugin by its entry point; a bare checkout names it.
INSTALLED = any(e.value == "gelu_verify.pytest_plugin" for e in entry_points(group="pytest11"))
LOAD = () if INSTALLED else ("-p", "gelu_verify.pytest_plugin")

KERNELS = """
    import torch

    def gelu(x):
        assert x.is_floating_point(), "integers are refused"
        wide = x.double()
        y = 0.5 * wide * torch.erfc(-wide * 0.7071067811865476)
        y = torch.where(x == -torch.inf, 0.0, y)
        return torch.copysign(y, wide).to(x.dtype).detach()

    def clumsy(x):
        return torch.where((x > -3) & (x < -1), gelu(x) * 1.25, gelu(x))
"""
THREE_LINES = """
    import pytest
    from kernels import gelu

    @pytest.mark.accuracy(operator="gelu", formula="erf", formats=["bf16"])
    def test_gelu(accuracy_gate):
        accuracy_gate(gelu)
"""


@pytest.fixture
def project(pytester):
    pytester.makepyfile(kernels=KERNELS)
    pytester.syspathinsert()

    def run(test, *options):
        pytester.makepyfile(test_accuracy=test)
        return pytester.runpytest_inprocess(*LOAD, "--strict-markers", *options)

    return run


def test_three_lines_pass_in_a_process_of_their_own(pytester):
    pytester.makepyfile(kernels=KERNELS, test_accuracy=THREE_LINES)
    done = pytester.runpytest_subprocess(*LOAD, "--strict-markers")
    done.assert_outcomes(passed=1)


def test_failure_says_where_how_far_and_how_to_see_it_again(project):
    done = project(THREE_LINES.replace("gelu)", "clumsy)").replace("import gelu", "import clumsy"))
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "*ContractBroken: clumsy gelu bf16 cpu*",
            "*inputs break cancelling; worst * ULP: got *, exact *",
            "*at: x = -* (0x*)",
            "*by: contract cancelling",
            "*accuracy holds: *",
            "*reproduce: gelu-verify check *--input 0x*",
        ]
    )


def test_option_goes_over_marker_and_marker_over_the_project(project, pytester):
    pytester.makepyprojecttoml('[tool.gelu_verify]\ncontract = "approximation"\nexamples = 0\n')
    test = """
        import pytest
        from kernels import gelu

        @pytest.mark.accuracy(formats=["bf16"])
        def test_project(accuracy_gate):
            (result,) = accuracy_gate(gelu).kernels
            assert result.contract == EXPECTED[0]

        @pytest.mark.accuracy(formats=["bf16"], contract="cancelling")
        class TestClass:
            def test_marker(self, accuracy_gate):
                (result,) = accuracy_gate(gelu).kernels
                assert result.contract == EXPECTED[1]

            @pytest.mark.accuracy(contract="tail_accurate")
            def test_nearest(self, accuracy_gate):
                (result,) = accuracy_gate(gelu).kernels
                assert (result.contract, result.format) == (EXPECTED[2], "bf16")
    """
    names = ("approximation", "cancelling", "tail_accurate")
    expected = f"    EXPECTED = {names!r}\n"
    project(expected + test.replace("\n    ", "\n")).assert_outcomes(passed=3)
    expected = f"    EXPECTED = {('faithful',) * 3!r}\n"
    done = project(expected + test.replace("\n    ", "\n"), "--accuracy-contract", "faithful")
    done.assert_outcomes(passed=3)


def test_baseline_is_kept_where_there_is_one(project, pytester):
    accepting = """
        from pathlib import Path
        from gelu_verify.baseline import Folder, acceptance
        from kernels import gelu

        def test_accept(accuracy_gate):
            results = accuracy_gate(gelu, formats=["bf16"])
            assert not results.compared
            acceptance.accept(results, Folder.read(Path("reports/baselines")))

        def test_held(accuracy_gate):
            (compared,) = accuracy_gate(gelu, formats=["bf16"]).compared
            assert compared.verdict == "held"
    """
    project(accepting).assert_outcomes(passed=2)
    pytester.makepyfile(kernels=KERNELS.replace("0.7071067811865476", "0.70710"))
    done = pytester.runpytest_subprocess(*LOAD, "-k", "held")
    done.assert_outcomes(failed=1, deselected=1)
    done.stdout.fnmatch_lines(
        ["*regressed: deep_tail: largest error 0.666 ULP, was 0.499 ULP*28 of 65,536 results*",
         "*reproduce: pytest test_accuracy.py::test_held"]
    )  # fmt: skip


def test_test_is_skipped_when_the_device_is_absent(project):
    done = project(THREE_LINES, "-rs", "--accuracy-devices", "cuda:99")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED*nothing could be checked: device: got cuda:99*"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('formats=["bf16"]', 'format="bf16"'), "*key format*Did you mean formats?*"),
        (('formats=["bf16"]', 'formats=["bf61"]'), "*Did you mean bf16?*"),
        (('formula="erf"', 'formula="erv"'), "*Did you mean erf?*"),
        (('operator="gelu", formula="erf", formats=["bf16"]', '"gelu"'), "*expected names*"),
    ],
)
def test_marker_that_is_wrong_names_the_nearest(project, change, message):
    done = project(THREE_LINES.replace(*change))
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([message])


def test_nightly_prints_the_seed_that_it_drew(project):
    done = project(THREE_LINES, "--accuracy-profile", "nightly", "--accuracy-examples", "1")
    done.assert_outcomes(passed=1)
    done.stdout.re_match_lines([r"accuracy: profile nightly, seed [1-9]\d*"])


def test_option_that_is_wrong_ends_the_run(project):
    done = project(THREE_LINES, "--accuracy-seed", "many")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "option: seed: got 'many'" in done.stderr.str() + done.stdout.str()


def test_plugin_loads_nothing_until_it_is_used(pytester):
    pytester.makepyfile(
        test_light="import sys\ndef test_light():\n    assert 'torch' not in sys.modules\n"
        "    assert 'pydantic' not in sys.modules\n"
    )
    pytester.runpytest_subprocess(*LOAD).assert_outcomes(passed=1)
