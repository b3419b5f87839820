"""The accuracy gate inside a user's own tests.

    @pytest.mark.accuracy(formula="tanh", formats=["bf16"], contract="tail_accurate")
    def test_gelu(accuracy_gate):
        accuracy_gate(my_gelu)

The marker takes the claims of a kernel by the names of the configuration; the options are those of
``gelu-verify gate``, as ``--accuracy-NAME``; what neither says is read from ``[tool.gelu_verify]``
of the project, where there is one. Loaded in every run of pytest: it imports nothing until used.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from gelu_verify.config.options import OPTIONS

if TYPE_CHECKING:
    from gelu_verify.config.settings import Settings
    from gelu_verify.records import Results

MARKER = "accuracy"
#: A test runs its kernel here and alone: how many at a time, and for how long, is pytest's.
_OPTIONS = [name for name in OPTIONS if name not in ("workers", "timeout")]
_CLAIMS = ("operator", "formula", "formats", "contract", "devices")
_SETTINGS = pytest.StashKey[Any]()

Kernel = str | Callable[..., Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of a gate."""
    group = parser.getgroup("accuracy", "accuracy of GELU kernels (gelu_verify)")
    for name in _OPTIONS:
        text = OPTIONS[name].text.replace("%", "%%")
        group.addoption(f"--accuracy-{name}", metavar=name.upper(), default=None, help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}({', '.join(_CLAIMS)}): what the kernel of accuracy_gate claims and promises",
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which inputs a run draws, where they are not the usual ones."""
    given = config.getoption("accuracy_profile") or config.getoption("accuracy_seed")
    if not given:
        return None
    settings = _settings(config)
    return f"accuracy: profile {settings.profile.value}, seed {settings.seed}"


@pytest.fixture
def accuracy_gate(request: pytest.FixtureRequest) -> Callable[..., Results]:
    """Return a function that checks a kernel and fails the test where it breaks its contract.

    ``accuracy_gate(kernel, **claims)``: kernel is a function or a name as on the command line;
    claims go over those of the marker. What a baseline of that name holds, it must keep. Returns
    the results; skips the test where nothing can be checked here.
    """

    def gate(kernel: Kernel, **claims: Any) -> Results:
        from gelu_verify.gate import single

        every = _claims(request.node) | claims
        given = {name: text for name, text in _texts(request.config).items() if name in _CLAIMS}
        node = shlex.join(["pytest", request.node.nodeid])
        outcome = single.check(kernel, _settings(request.config), every, given, lambda _: node)
        if outcome.exit_status == 3:
            reasons = [f.message for k in outcome.kernels for f in k.findings]
            pytest.skip(f"nothing could be checked: {'; '.join(reasons) or 'no result at all'}")
        return outcome.raise_if_failed()

    return gate


def _claims(node: pytest.Item) -> dict[str, Any]:
    """Return the claims of all markers of a test, the nearest one's over the others'."""
    found: dict[str, Any] = {}
    for mark in reversed(list(node.iter_markers(MARKER))):
        if mark.args:
            pytest.fail(f"accuracy marker: got {mark.args!r}, expected names: formats=['bf16'].")
        found |= mark.kwargs
    return found


def _texts(config: pytest.Config) -> dict[str, str | None]:
    """Return the options that were given, by name."""
    return {name: config.getoption(f"accuracy_{name}") for name in _OPTIONS}


def _settings(config: pytest.Config) -> Settings:
    """Return the settings of the project with the options over them; one seed a run."""
    if _SETTINGS not in config.stash:
        from gelu_verify.config.file import load_if_there
        from gelu_verify.errors import GeluVerifyError
        from gelu_verify.gate.plan import fresh_seed

        try:
            settings = load_if_there(config.rootpath / "pyproject.toml").over(_texts(config))
        except GeluVerifyError as error:
            raise pytest.UsageError(str(error)) from None
        baselines = str(config.rootpath / settings.baselines)
        update = {"seed": fresh_seed(settings), "baselines": baselines}
        config.stash[_SETTINGS] = settings.model_copy(update=update)
    found: Settings = config.stash[_SETTINGS]
    return found
