"""Sound kernels that differ in legal ways: no check may flag one of them, whatever the seed.

A module of ``MODULES`` is a sort of difference. A kernel is a function with the decorator
``gelu_verify.selftest.entry.sound``; its docstring says in what it differs. One that may do less
than the default contract, say flush subnormals, declares a contract that says so.
"""

MODULES = ("pointwise",)
