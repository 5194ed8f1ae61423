"""One execution while it is recorded: its log records, and the record that they make."""
