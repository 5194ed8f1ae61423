"""The write-ahead log of executions: its bytes, its segments, and its recovery."""
