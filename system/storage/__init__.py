"""How the runtime's data stands on a disk: JSON Lines logs and files that change at once."""
