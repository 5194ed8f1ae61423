"""``python -m system``: the command line, from its first import on."""

from __future__ import annotations

try:
    from system.cli import main

    main()
except KeyboardInterrupt:
    # Before the command had begun: nothing was opened yet.
    raise SystemExit(130) from None
