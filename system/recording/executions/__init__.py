"""One execution while it is recorded: its facts, and the record that they make."""
