"""One record: its values, their rules, and the checks of both."""
