import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gelu_verify.config.file import load
from gelu_verify.config.reading import parsed
from gelu_verify.config.settings import Profile, Settings
from gelu_verify.errors import UsageError


@pytest.fixture
def write(tmp_path):
    def put(text):
        path = tmp_path / "pyproject.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return put


WHOLE = """
[tool.gelu_verify]
sweep = "quick"
timeout = 5
formats = ["bf16"]
contract = "faithful"

[[tool.gelu_verify.kernels]]
kernel = "torch-erf"
formats = ["fp32", "fp16"]

[[tool.gelu_verify.kernels]]
kernel = "cpp-erf"
contract = "tail_accurate"
"""


def test_load_reads_the_table_when_it_is_whole(write):
    settings = load(write(WHOLE))
    assert (settings.sweep, settings.timeout, settings.profile) == ("quick", 5.0, Profile.CI)
    assert [settings.spec(entry).formats for entry in settings.kernels] == [
        ("fp32", "fp16"),
        ("bf16",),
    ]
    assert [settings.spec(entry).contract for entry in settings.kernels] == [
        "faithful",
        "tail_accurate",
    ]


def test_over_puts_the_command_line_over_every_kernel(write):
    settings = load(write(WHOLE)).over({"formats": "fp64,bf16", "sweep": None, "timeout": "7"})
    assert [settings.spec(entry).formats for entry in settings.kernels] == [("fp64", "bf16")] * 2
    assert (settings.sweep, settings.timeout) == ("quick", 7.0)


def test_spec_keeps_known_issues_only_of_the_kernels_own_contract(write):
    settings = load(write(WHOLE))
    entry = settings.kernels[0]
    assert not settings.spec(entry).known_issues  # torch-erf declares cancelling
    same = settings.over({"contract": "cancelling"})
    assert same.spec(same.kernels[0]).known_issues


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.gelu_verify]\nsweeps = 'quick'", "key sweeps.*Did you mean sweep?"),
        (
            "[[tool.gelu_verify.kernels]]\nkernel='torch-erf'\nformat=['bf16']",
            r"key kernels\[0\].format.*Did you mean formats?",
        ),
        (
            "[[tool.gelu_verify.kernels]]\nkernel='k'\n"
            "[[tool.gelu_verify.kernels.known_issues]]\nchek='a'",
            r"known_issues\[0\].chek.*Did you mean check?",
        ),
        ("[[tool.gelu_verify.kernels]]\nformats=['bf16']", r"got no kernels\[0\].kernel"),
        (
            "[tool.gelu_verify]\nsweep = 'quik'",
            "sweep: got 'quik', expected one of .* Did you mean quick?",
        ),
        ("[tool.gelu_verify]\nformats = ['bf61']", r"formats\[0\]: .*Did you mean bf16?"),
        ("[tool.gelu_verify]\nformats = []", "formats: got .*at least 1 item"),
        ("[tool.gelu_verify]\ndevices = ['gpu']", r"devices\[0\]: device: got 'gpu'"),
        ("[tool.gelu_verify]\nseed = true", "seed: got True, expected a valid integer"),
        ("[tool.gelu_verify]\nseed = '1'", "seed: got '1', expected a valid integer"),
        ("[tool.gelu_verify]\nseed = -1", "seed: got -1"),
        ("[tool.gelu_verify]\ntimeout = nan", "timeout: got nan"),
        ("[tool.gelu_verify]\ntimeout = 0", "timeout: got 0"),
        (
            "[tool.gelu_verify]\nprofile = 'weekly'",
            "profile: got 'weekly', expected one of ci, nightly",
        ),
        ("[tool.other]", r"without \[tool.gelu_verify\]"),
        ("tool = 1", r"without \[tool.gelu_verify\]"),
        ("[tool.gelu_verify", "expected TOML"),
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("a = " + "9" * 10_000, "expected TOML"),
        (b"\xff\xfe", "expected text in UTF-8"),
        ("[tool.gelu_verify]\nseed = 1\nseed = 2", "expected TOML"),
    ],
)
def test_load_says_in_one_line_what_is_wrong(write, text, message):
    with pytest.raises(UsageError, match=message) as raised:
        load(write(text))
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 700


def test_load_refuses_a_file_that_is_no_file(tmp_path):
    with pytest.raises(UsageError, match="expected a file"):
        load(tmp_path)
    with pytest.raises(UsageError, match="No such file"):
        load(tmp_path / "absent.toml")


def test_over_names_the_option_when_a_value_is_wrong(write):
    settings = load(write(WHOLE))
    with pytest.raises(UsageError, match="option: seed: got 'many'"):
        settings.over({"seed": "many"})
    with pytest.raises(UsageError, match="Did you mean quick"):
        settings.over({"sweep": "quik"})


TOML = st.text(alphabet="[]{}=.\"'#\n \t019-+_eEnaif\\tru,:kernlsfomatgt", max_size=120)


@given(st.binary(max_size=200) | TOML.map(str.encode) | TOML.map(
    lambda text: b"[tool.gelu_verify]\n" + text.encode()))  # fmt: skip
def test_load_gives_settings_or_one_line_whatever_the_bytes(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pyproject.toml")
        path.write_bytes(content)
        try:
            found = load(path)
        except UsageError as error:
            message = str(error)
        else:
            assert isinstance(found, Settings)
            return
    assert "\n" not in message
    assert len(message) < 900


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


@given(st.sampled_from([*Settings.model_fields, "kernel"]), VALUES)
def test_any_value_of_a_key_is_taken_or_told_in_one_line(key, value):
    try:
        found = parsed(Settings, {key: value}, "configuration")
    except UsageError as error:
        message = str(error)
    else:
        assert isinstance(found, Settings)
        return
    assert "\n" not in message
    assert key in message
