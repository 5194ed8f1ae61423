"""Random actions and crashes against a target."""
