"""An event log on a file system of which a quota is full, as btrfs behaves."""

from __future__ import annotations

from errno import EDQUOT

import pytest

from system.errors import StorageFull
from system.storage.framing import Framing
from tests.unit.system.faulty_files import FaultyHost
from tests.unit.system.logs import both_framings, opened, say, texts


@both_framings
def test_a_log_of_which_a_full_quota_refuses_a_line_and_every_truncation_goes_on(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)
    here.files.fail("append", "events.jsonl", EDQUOT)
    here.files.fail("truncate", "events.jsonl", EDQUOT, sticky=True)

    with pytest.raises(StorageFull):
        say(log, "refused")
    say(log, "a")
    assert texts(opened(here, framing)) == ["a"]
