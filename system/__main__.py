"""``python -m system``: the command line, from its first import on."""

from __future__ import annotations

try:
    from system.cli import main

    main()
except KeyboardInterrupt:
    # The command had not begun, so nothing was opened.
    raise SystemExit(130) from None
