"""What is checked and how: defaults, then ``[tool.gelu_verify]`` of a file, then the command line.

``options`` words each option once; ``settings`` is their record, ``file`` reads it.
"""
