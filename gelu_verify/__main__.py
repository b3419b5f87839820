"""``python -m gelu_verify`` is ``gelu-verify``."""

from gelu_verify.cli import main

if __name__ == "__main__":
    main()
