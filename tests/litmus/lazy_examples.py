"""Programs and checks that show one rule of the lazy engine each, where random ones seldom do."""

from __future__ import annotations

from sim.disk.cache.operation import SyncFailure
from tests.litmus.lazy_law import Pair

COMES_BACK = Pair(
    [("write", "f", "B2", 4095), ("fsync", "f"), ("truncate", "f", 1), ("truncate", "f", 4097)],
    [("read", "f", 4095, 2)],
)
RETURNED_NAME = Pair(
    [("write", "g", "A1", 0), ("rename", "f", "g"), ("fsync", "g"), ("unlink", "g")],
    [("size", "g", "")],
)
MOVED = Pair([("mkdir", "e"), ("rename", "d", "e/h"), ("append", "f", "B1")], [("parent", "d")])
CHANGED = Pair([("chmod", "f", 0o600), ("chmod", "f", 0o640)], [("mode", "f", "")])
DROPPED = Pair(
    [("write", "f", "B2", 0), ("truncate", "f", 1), ("failed fsync", "f", SyncFailure.EXT4)],
    [("whole", "f", "")],
)
EXTENDED = Pair(
    [("append", "f", "B1")],
    [
        ("whole", "g", ""),
        ("read", "f", 3, 1),
        ("note", "f", ""),
        ("do", ("allocate", "f", 0, 4096)),
    ],
)
SURPLUS = Pair(
    [
        ("write", "f", "B1", 8192),
        ("write_synced", "f", "C1", 4096),
        ("failed fsync", "f", SyncFailure.XFS),
    ],
    [("read", "f", 4096, 1), ("do", ("truncate", "f", 9000))],
)
GROWN = Pair([("append", "f", "B1")], [("do", ("allocate", "f", 0, 4096)), ("read", "f", 3, 1)])
WRITTEN = Pair([("append", "f", "B1")], [("do", ("write", "f", "B2", 0)), ("whole", "f", "")])
OVERWRITTEN = Pair(
    [("append", "f", "B1")],
    [("do", ("write", "f", "B2", 0)), ("do", ("write", "f", "C1", 1)), ("whole", "f", "")],
)
REMOVED = Pair([("append", "f", "B1")], [("do", ("unlink", "f")), ("exists", "f", "")])
CUT = Pair([("truncate", "f", 1), ("append", "f", "B1")], [("whole", "f", "")])
TORN_TWICE = Pair(
    [("write", "f", "B2", 0), ("write", "d/f", "C2", 0)],
    [("whole", "f", ""), ("whole", "d/f", "")],
)
APPENDED = Pair([("mkdir", "e")], [("do", ("append", "f", "B1")), ("whole", "f", "")])
SYNCED = Pair(
    [("mkdir", "e")],
    [("do", ("append", "f", "B1")), ("do", ("fsync", "f")), ("whole", "f", "")],
)
LOG_TREE = Pair(
    [("fsync", "f")],
    [
        ("size", "f", ""),
        ("size", "g", ""),
        ("do", ("link", "f", "g")),
        ("do", ("unlink", "f")),
    ],
)
OUT_OF_THE_LOG = Pair(
    [("write", "g", "A1", 0), ("fsync", "g"), ("fsync", "f")],
    [
        ("whole", "g", ""),
        ("exists", "d/f", ""),
        ("do", ("rename", "g", "f")),
        ("do", ("unlink", "d/f")),
    ],
)
FAILED = Pair(
    [("mkdir", "e")],
    [
        ("whole", "f", ""),
        ("do", ("write", "f", "B2", 0)),
        ("do", ("truncate", "f", 1)),
        ("do", ("failed fsync", "f", SyncFailure.BTRFS)),
    ],
)
LINKED = Pair([("link", "f", "g")], [("do", ("write", "f", "B2", 0)), ("whole", "g", "")])
UNIT_BEHIND_A_WRITE = Pair(
    [("append", "f", "B1")],
    [("do", ("write", "f", "C2", 0)), ("unit", (("whole", "f", ""),))],
)
UNIT_BEHIND_A_NAME = Pair(
    [("append", "f", "B1")], [("do", ("link", "f", "g")), ("unit", (("names", "", ""),))]
)
UNIT_THAT_WRITES = Pair(
    [("append", "f", "B1")],
    [("unit", (("do", ("unlink", "f")),)), ("exists", "f", "")],
)
TWO_UNITS = Pair(
    [("append", "f", "B1"), ("append", "d/f", "C1")],
    [("unit", (("size", "d/f", ""),)), ("size", "f", ""), ("size", "d/f", "")],
)
READ_AGAIN = Pair(
    [("write", "f", "B2", 0), ("append", "f", "C1")],
    [("unit", (("same", "f", "f"), ("is new", "f", ""))), ("whole", "f", "")],
)
WAY_OF_SOME = Pair(
    [("mkdir", "e"), ("write", "e/g", "B2", 0), ("failed fsync", "f", SyncFailure.EXT4)],
    [("unit", (("size", "e/g", ""), ("read", "d/f", 4095, 600)))],
)
TORN_IN_UNITS = Pair(
    [("write", "f", "B2", 0), ("write", "d/f", "C2", 0)],
    [("unit", (("is new", "f", ""),)), ("whole", "d/f", ""), ("whole", "f", "")],
)
REPLACED = Pair([("link", "f", "g")], [("whole", "f", ""), ("do", ("rename", "d/f", "f"))])
SIZE_UNDECIDED = Pair(
    [("append", "f", "B1")], [("read", "f", 0, 1), ("do", ("write", "g", "A1", 0))]
)
REREAD = Pair(
    [("append", "f", "B1")],
    [("read", "f", 0, 1), ("do", ("write", "g", "A1", 0)), ("read", "f", 3, 2)],
)
LINKS_OF_DIRECTORY = Pair([("mkdir", "d/e"), ("rmdir", "d/e")], [("links", "d", "")])
MOVED_OVER = Pair(
    [("rename", "f", "g"), ("rename", "g", "d/f")],
    [("names", "", ""), ("do", ("rename", "d/f", "f")), ("names", "d", ""), ("whole", "f", "")],
)
TRUNCATED_TWICE = Pair(
    [("append", "f", "B2"), ("truncate", "f", 1)],
    [("read", "f", 0, 1), ("do", ("truncate", "f", 2)), ("whole", "f", "")],
)
MODE_OF_THE_CHECK = Pair(
    [("chmod", "f", 0o600)], [("mode", "f", ""), ("do", ("chmod", "f", 0o640))]
)
PARENT_OF_A_MOVED = Pair(
    [("mkdir", "e"), ("rename", "d", "e/h")],
    [("parent", "e/h"), ("do", ("mkdir", "h")), ("do", ("rename", "e/h", "h/d"))],
)
OLD_TAIL = Pair(
    [
        ("append", "f", "B2"),
        ("fsync", "f"),
        ("truncate", "f", 1),
        ("fsync", "f"),
        ("truncate", "f", 4),
    ],
    [("whole", "f", "")],
)
OLD_TAIL_OF_THE_CHECK = Pair(
    [("write", "f", "B2", 0)],
    [
        ("whole", "f", ""),
        ("do", ("truncate", "f", 1)),
        ("do", ("fsync", "f")),
        ("do", ("truncate", "f", 3)),
    ],
)
BLIND_OLD_TAIL = Pair([("write", "f", "B2", 0)], OLD_TAIL_OF_THE_CHECK.observer[1:])
RETURNED_BY_A_RENAME = Pair(
    [("rename", "f", "d/f"), ("fsync", "d/f"), ("rename", "d/f", "g")],
    [("size", "d/f", ""), ("size", "g", "")],
)
TAKEN_TWICE = Pair(
    [("rename", "f", "g"), ("rename", "d/f", "g"), ("rename", "g", "f")],
    [("exists", "g", ""), ("whole", "f", ""), ("links", "d/f", ""), ("names", "", "")],
)
WRITTEN_TWICE = Pair([], [("whole", "g", ""), ("do", ("write", "g", "A1", 0)), ("note", "d/f", "")])
BRANCHED_LATER = Pair(
    [("rename", "d/f", "g"), ("truncate", "f", 0), ("write", "d/f", "C3", 511)],
    [("whole", "f", ""), ("same", "g", "d/f")],
)
FAR_WRITE = Pair([("write", "d/f", "B2", 4095)], [("read", "d/f", 1, 1)])
REMOVED_NAME = Pair([("unlink", "d/f")], [("names", "d", "")])
FACTOR = Pair([("chmod", "f", 0o600)], [("unit", (("links", "f", ""),))])
TRUNCATED = Pair([("truncate", "f", 2)], [("whole", "f", "")])
_FAILS = ("do", ("failed fsync", "f", SyncFailure.XFS))
_DROPS = ("do", ("drop_pages", "f", 0, 0))
DROPPED_PAGE = Pair(
    [("truncate", "f", 2)],
    [("whole", "f", ""), ("do", ("write", "f", "B1", 0)), _FAILS, _DROPS, ("whole", "f", "")],
)
DROPPED_BY_THE_NEXT_BOOT = Pair(
    [("append", "f", "B1"), ("failed fsync", "f", SyncFailure.XFS)], [_DROPS, ("whole", "f", "")]
)
DROPPED_WITH_A_TRUNCATION = Pair(
    [("mkdir", "e")],
    [
        ("do", ("truncate", "f", 0)),
        ("do", ("write", "f", "B2", 0)),
        ("do", ("failed fsync", "f", SyncFailure.EXT4)),
        _DROPS,
        ("whole", "f", ""),
    ],
)
DROPPED_IN_A_UNIT = Pair(
    [("append", "f", "B1")],
    [_FAILS, ("unit", (_DROPS, ("whole", "f", "")))],
)
WRITTEN_AGAIN = Pair(
    [
        ("write", "f", "B1", 4096),
        ("failed fsync", "f", SyncFailure.EXT4),
        ("write", "f", "C1", 4096),
    ],
    [("whole", "f", ""), ("do", ("mkdir", "e"))],
)
# The part of the last write that a kill leaves has written all lost data again.
NOT_LOST_ANY_MORE = Pair(
    [("write", "f", "B1", 0), ("failed fsync", "f", SyncFailure.XFS), ("write", "f", "C2", 4095)],
    [_DROPS],
)
# It leaves the data lost that the rest of the write would have written again.
STILL_LOST = Pair(
    [
        ("write", "f", "B1", 4100),
        ("failed fsync", "f", SyncFailure.XFS),
        ("write", "f", "C2", 4095),
    ],
    [("whole", "f", ""), _DROPS],
)
CUT_AFTER_A_PART_OF_A_WRITE = Pair(
    [("write", "f", "B2", 8191)], [_FAILS, _DROPS, ("whole", "f", "")]
)
# The directory e shows that a barrier has made the last write durable, if its block has data.
_MAKES_DURABLE = [
    ("do", ("failed fsync", "f", SyncFailure.EXT4)),
    ("do", ("write", "f", "A1", 4097)),
    ("do", ("fsync", "f")),
    ("do", ("mkdir", "e")),
    ("do", ("fsync", "")),
]
UNWRITTEN = Pair(
    [("write", "f", "B1", 4096)],
    [
        ("names", "", ""),
        ("read", "f", 4097, 1),
        ("do", ("write", "f", "C1", 4097)),
        *_MAKES_DURABLE,
        ("whole", "f", ""),
    ],
)
FREED = Pair(
    [("write", "f", "B3", 4096), ("fsync", "f"), ("truncate", "f", 0), ("truncate", "f", 4099)],
    UNWRITTEN.observer,
)
# The barrier covers the truncation without the directory, which it could not overtake before.
OVERTAKES = Pair(
    [("fsync", "f"), ("mkdir", "e"), ("truncate", "f", 4), ("fsync", "f")],
    [("size", "f", ""), ("exists", "e", "")],
)

EXAMPLES = (
    OVERTAKES,
    DROPPED_PAGE,
    DROPPED_BY_THE_NEXT_BOOT,
    DROPPED_WITH_A_TRUNCATION,
    DROPPED_IN_A_UNIT,
    WRITTEN_AGAIN,
    NOT_LOST_ANY_MORE,
    STILL_LOST,
    CUT_AFTER_A_PART_OF_A_WRITE,
    UNWRITTEN,
    FREED,
    OVERWRITTEN,
    COMES_BACK,
    RETURNED_NAME,
    MOVED,
    CHANGED,
    DROPPED,
    EXTENDED,
    SURPLUS,
    GROWN,
    WRITTEN,
    REMOVED,
    CUT,
    TORN_TWICE,
    APPENDED,
    SYNCED,
    LOG_TREE,
    OUT_OF_THE_LOG,
    FAILED,
    LINKED,
    UNIT_BEHIND_A_WRITE,
    UNIT_BEHIND_A_NAME,
    UNIT_THAT_WRITES,
    TWO_UNITS,
    READ_AGAIN,
    WAY_OF_SOME,
    TORN_IN_UNITS,
    REPLACED,
    SIZE_UNDECIDED,
    REREAD,
    LINKS_OF_DIRECTORY,
    MOVED_OVER,
    TRUNCATED_TWICE,
    MODE_OF_THE_CHECK,
    PARENT_OF_A_MOVED,
    OLD_TAIL,
    OLD_TAIL_OF_THE_CHECK,
    BLIND_OLD_TAIL,
    RETURNED_BY_A_RENAME,
    TAKEN_TWICE,
    WRITTEN_TWICE,
    BRANCHED_LATER,
    FAR_WRITE,
    REMOVED_NAME,
    FACTOR,
    TRUNCATED,
)
