"""Storage of the runtime: event logs as JSON Lines, and files that are replaced atomically."""
