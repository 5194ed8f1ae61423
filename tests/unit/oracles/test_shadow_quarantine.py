"""Files with damaged bytes are durable once a recovery has named them."""

from __future__ import annotations

import pytest

from oracles.shadow_quarantine import ShadowQuarantine
from oracles.violation import LostAck


@pytest.mark.parametrize("later", [{}, {"log.quarantine.1": b""}])
def test_lost_quarantine_file_is_a_violation(later: dict[str, bytes]) -> None:
    files = {"log.quarantine.1": b"damaged"}

    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    shadow = ShadowQuarantine()
    shadow.keep(files, read)
    shadow.check(read)
    files.clear()
    files.update(later)
    with pytest.raises(LostAck):
        shadow.check(read)
