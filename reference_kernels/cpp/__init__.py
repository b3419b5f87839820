"""C++ kernels as torch operators: ``torch.ops.gelu_verify_kernels.*``, built on first import.

``cpu`` builds, loads and registers the operators; ``cuda`` adds what runs on a GPU. Both raise
``UnavailableError`` where a compiler (or ninja, which torch's builder runs) is missing.
"""
