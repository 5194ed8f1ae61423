"""The commands, one a file; ``powercut.cli`` imports the one that is called."""
