"""What is checked and how: defaults, then ``[tool.gelu_verify]`` of a file, then the command line.

The options are defined once, in :class:`~gelu_verify.config.settings.Settings`: its fields are the
keys of the file, the options of ``gelu-verify gate`` and those of the pytest plugin.
"""

from gelu_verify.config.file import DEFAULT_PATH, load
from gelu_verify.config.settings import KernelEntry, Profile, Settings

__all__ = ["DEFAULT_PATH", "KernelEntry", "Profile", "Settings", "load"]
