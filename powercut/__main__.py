"""``python -m powercut`` is the command ``powercut``."""

from powercut.cli.main import main

main()
