"""Programs that each show one rule of the models, for the naive enumeration.

A comment names the rule of the programs below it. Random programs seldom show these.
"""

from __future__ import annotations

from typing import Final

from tests.litmus.programs import Program

EXAMPLES: Final[tuple[Program, ...]] = (
    # Names are in order on btrfs without a log tree; a sync ends it.
    [("link", "f", "g"), ("unlink", "f"), ("fsync", "d/f")],
    [("chmod", "f", 0o600), ("link", "f", "g"), ("rename", "f", "h"), ("unlink", "g")],
    [("fsync", "f"), ("sync",), ("link", "f", "g"), ("unlink", "f")],
    [("fsync", "f"), ("link", "f", "g"), ("unlink", "f")],
    # The kernel logs a rename of a file at once if the file is in the log, so that no later change
    # of another file overtakes it.
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "f"), ("unlink", "d/f")],
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "h"), ("append", "f", "C1"),
     ("chmod", "d/f", 0o600)],
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "f"), ("truncate", "d/f", 1)],
    [("mkdir", "e"), ("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "e/g"),
     ("unlink", "d/f")],
    # A size that posix_fallocate gives a file, and the creation of a file, have no place in order.
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "f"), ("allocate", "d/f", 0, 9)],
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "f"), ("create", "h")],
    # It may have left the log if a barrier on another file came after its last change.
    [("write", "g", "B2", 0), ("fsync", "f"), ("fsync", "g"), ("rename", "g", "f"),
     ("unlink", "d/f")],
    [("write", "g", "B2", 0), ("fsync", "g"), ("fsync", "d/f"), ("rename", "g", "f"),
     ("unlink", "d/f")],
    [("write", "g", "B2", 0), ("fsync", "g"), ("fsync", "g"), ("rename", "g", "f"),
     ("unlink", "d/f")],
    [("fsync", "d/f"), ("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "f"),
     ("unlink", "d/f")],
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "f"), ("unlink", "d/f"),
     ("fsync", "d")],
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "h"), ("write", "f", "C3", 0),
     ("fsync", "f"), ("unlink", "d/f")],
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "f"), ("unlink", "d/f"),
     ("create", "h"), ("fsync", "h")],
    # Changes after the next barrier overtake it, and those that a barrier may have logged.
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "f"), ("fsync", "d/f"),
     ("unlink", "d/f")],
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "f"), ("link", "d/f", "h"),
     ("unlink", "d/f"), ("fsync", "h")],
    [("write", "g", "B2", 0), ("link", "f", "e"), ("sync",), ("fsync", "d/f"),
     ("append", "g", "C1"), ("fsync", "g"), ("rename", "g", "h"), ("rename", "d/f", "f"),
     ("fsync", "e")],
    [("mkdir", "e"), ("sync",), ("write", "d/g", "B2", 0), ("fsync", "d/g"),
     ("rename", "d/g", "d/f"), ("rename", "e", "d/e"), ("fsync", "")],
    # A barrier that makes it durable frees nothing.
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "d/g"), ("unlink", "f"),
     ("fsync", "d")],
    # The log has only the last names of a file.
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "f"), ("unlink", "d/f"),
     ("unlink", "f")],
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "f"), ("rename", "f", "h"),
     ("unlink", "d/f")],
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "h"), ("link", "d/f", "g"),
     ("unlink", "f")],
    # A truncation of a file that was synced after its last change of names waits for a commit.
    [("append", "f", "B1"), ("fsync", "f"), ("unlink", "d/f"), ("truncate", "f", 1)],
    [("link", "f", "g"), ("fdatasync", "f"), ("chmod", "d", 0o600), ("truncate", "g", 0),
     ("fsync", "")],
    [("fsync", "f"), ("mkdir", "e"), ("fsync", "d/f"), ("truncate", "f", 9)],
    [("fsync", "f"), ("rename", "d/f", "g"), ("rename", "g", "h"), ("truncate", "f", 0)],
    # Another one may be logged with a name of its file.
    [("fsync", "f"), ("unlink", "d/f"), ("truncate", "f", 1), ("rename", "f", "g"), ("fsync", "")],
    [("fsync", "f"), ("unlink", "d/f"), ("link", "f", "g"), ("fsync", ""), ("truncate", "f", 1)],
    [("link", "f", "g"), ("fsync", "f"), ("unlink", "d/f"), ("truncate", "f", 1), ("unlink", "g")],
    [("link", "f", "g"), ("sync",), ("fsync", "f"), ("chmod", "f", 0o600), ("truncate", "f", 1),
     ("rename", "d/f", "g"), ("fsync", "")],
    [("chmod", "f", 0o600), ("fsync", "d/f"), ("truncate", "d/f", 0), ("rename", "f", "d/f")],
    [("fsync", "d/f"), ("unlink", "d/f"), ("truncate", "f", 1)],
    # A directory is not logged with its renames.
    [("mkdir", "e"), ("fsync", "e"), ("rename", "e", "h"), ("unlink", "d/f")],
    # A name in a directory means nothing without the directory.
    [("mkdir", "e"), ("link", "f", "e/g")],
    # Data that a truncation has cut off does not come back when the file grows.
    [("write", "f", "C3", 0), ("truncate", "f", 1), ("fsync", "d"), ("truncate", "f", 9)],
    # Nor does it if a barrier on other pages has covered the truncation.
    [("write", "g", "B2", 4095), ("truncate", "g", 0), ("write_synced", "g", "C1", 8192)],
    # A truncation that extends the file brings back what a durable one cut off.
    [("truncate", "f", 1), ("fsync", "f"), ("truncate", "f", 512)],
    [("truncate", "f", 1), ("append", "f", "B1"), ("truncate", "f", 1),
     ("fsync", "f"), ("truncate", "f", 2)],
    # A size that a truncation has taken away comes back as the end of a block below a gap.
    [("truncate", "f", 4096), ("fsync", "f"), ("truncate", "f", 0), ("write", "f", "C3", 8192)],
    # A rename over a name writes no file whose blocks are allocated, before the write or after it.
    [("create", "g"), ("fsync", "g"), ("allocate", "g", 0, 3), ("write", "g", "C3", 1),
     ("rename", "g", "f")],
    [("write", "g", "C3", 0), ("allocate", "g", 0, 1), ("rename", "g", "f")],
    # Of a file with a block that is not, it writes all.
    [("write", "g", "C3", 4095), ("allocate", "g", 0, 1), ("rename", "g", "f")],
    [("create", "g"), ("fsync", "g"), ("write", "g", "C3", 4095), ("allocate", "g", 0, 4097),
     ("allocate", "g", 0, 1), ("rename", "g", "f")],
    # A truncation frees them.
    [("create", "g"), ("fsync", "g"), ("write", "g", "A1", 0), ("allocate", "g", 0, 1),
     ("truncate", "g", 0), ("write", "g", "B2", 0), ("rename", "g", "f")],
    # A name that a durable rename removed does not come back: of a file, of a directory.
    [("mkdir", "e"), ("write", "e/g", "A1", 0), ("rename", "e/g", "f"), ("fsync", "")],
    [("mkdir", "h"), ("rename", "h", "e"), ("rename", "f", "e/g"), ("fsync", "e")],
    # Moves of directories keep their order.
    [("mkdir", "e"), ("fsync", ""), ("rename", "d", "g"), ("rename", "e", "h")],
    # A file that moved to another directory is not lost when another file takes its old name.
    [("rename", "d/f", "g"), ("link", "f", "d/f"), ("fsync", "f"), ("fsync", "d")],
    [("rename", "d/f", "g"), ("write", "d/f", "B2", 0), ("fsync", "d/f"),
     ("unlink", "d/f"), ("fsync", "d")],
    # While the removal of its old name is unsynced, it gets that name back.
    [("rename", "d/f", "g"), ("rename", "f", "d/f"), ("fsync", "d"), ("fsync", "d"),
     ("unlink", "d/f")],
    # A file that was changed before the last barrier on the file that it replaces.
    [("mkdir", "e"), ("write", "g", "B2", 0), ("write", "e/g", "A1", 0),
     ("fsync", "e/g"), ("fsync", "g"), ("rename", "g", "e/g")],
    # A name that a file had for a time brings no directory.
    [("mkdir", "e"), ("write", "e/g", "A1", 0), ("rename", "e/g", "g"),
     ("fsync", "g")],
    # A file that made room for another has the names that it has by then.
    [("rename", "f", "g"), ("write", "f", "A1", 0), ("rename", "g", "h"),
     ("fsync", "f")],
    [("write", "g", "B2", 0), ("fsync", "g"), ("fsync", ""), ("rename", "g", "f"),
     ("write", "g", "A1", 0), ("unlink", "f"), ("fsync", "g")],
    # So has a file that made room for it, but a directory has not, and not by a barrier on a
    # directory.
    [("write", "g", "B2", 0), ("fsync", "g"), ("fsync", ""), ("rename", "g", "h"),
     ("rename", "f", "e"), ("rename", "d/f", "f"), ("rename", "e", "g"),
     ("rename", "h", "k"), ("fsync", "f")],
    [("rename", "d", "g"), ("rename", "f", "d"), ("rename", "g", "h"), ("fsync", "d")],
    [("rename", "f", "g"), ("rename", "d/f", "f"), ("rename", "g", "h"),
     ("fsync", "d")],
    # Its name in a new directory stays unsynced.
    [("rename", "f", "g"), ("write", "f", "A1", 0), ("mkdir", "e"),
     ("rename", "g", "e/g"), ("fsync", "f")],
    # A file that has a name again does not lose it by an earlier rename.
    [("link", "f", "g"), ("rename", "d/f", "g"), ("rename", "f", "g"), ("fsync", "g")],
    # A link gives a name anew, whatever the name was before.
    [("rename", "f", "g"), ("rename", "g", "f"), ("link", "f", "g"),
     ("rename", "g", "d/f"), ("fsync", "d/f")],
    # Of two files that were replaced, the first returns.
    [("write", "g", "B2", 0), ("rename", "g", "d/f"), ("rename", "f", "d/f"),
     ("fsync", ""), ("rename", "d/f", "h")],
    # A name whose removal is durable does not return.
    [("rename", "f", "d/f"), ("write", "f", "A1", 0), ("fsync", "f"),
     ("fsync", "d/f"), ("rename", "f", "d/f")],
    # The first of three files that had a name returns.
    [("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "f"),
     ("write", "g", "C3", 0), ("rename", "g", "f")],
    # It returns also after a barrier on another directory.
    [("rename", "d/f", "f"), ("fsync", "f"), ("fsync", "d"), ("rename", "f", "g")],
    # A rename over the first name of a new file is one piece.
    [("rename", "f", "g"), ("create", "f"), ("rename", "g", "f")],
    # A file never gets back the name that it loses itself.
    [("link", "f", "h"), ("create", "g"), ("rename", "g", "f"), ("fsync", "f"),
     ("rename", "h", "f"), ("rename", "f", "k")],
    # A name that a file had twice, and has no more, brings no directory.
    [("write", "f", "A1", 0), ("fsync", "f"), ("mkdir", "e"), ("create", "e/g"),
     ("link", "e/g", "h"), ("rename", "f", "e/g"), ("rename", "h", "e/g"),
     ("rename", "e/g", "k"), ("fsync", "k")],
    # Nor do renames between such names; the name that the file keeps brings them all.
    [("mkdir", "e"), ("create", "e/g"), ("rename", "e/g", "e/h"),
     ("rename", "e/h", "h"), ("fsync", "h")],
    [("create", "g"), ("mkdir", "e"), ("rename", "g", "e/f"), ("rename", "e/f", "h"),
     ("fsync", "h")],
    [("mkdir", "e"), ("create", "e/g"), ("rename", "e/g", "e/h"), ("fsync", "e/h")],
    [("mkdir", "e"), ("mkdir", "e/h"), ("create", "e/h/g"), ("fsync", "e/h/g")],
    # A removal belongs to the file of the barrier only if that had the name for a time.
    [("unlink", "f"), ("link", "d/f", "f"), ("unlink", "f"), ("fsync", "d/f")],
    [("link", "f", "h"), ("rename", "d/f", "f"), ("fsync", "h")],
    # A file made room only if it had the name durably, and another file keeps it.
    [("link", "d/f", "g"), ("rename", "g", "f"), ("create", "g"), ("fsync", "g")],
    [("create", "h"), ("rename", "h", "g"), ("rename", "g", "h"), ("link", "f", "g"),
     ("fsync", "f")],
    [("rename", "d", "g"), ("rename", "f", "d"), ("rename", "g", "e"),
     ("rename", "d", "f"), ("rename", "e/f", "d"), ("fsync", "e")],
    [("rename", "d/f", "d/g"), ("create", "d/f"), ("rename", "d/f", "f"),
     ("fsync", "f")],
    [("rename", "d", "h"), ("rename", "f", "d"), ("rename", "d", "f"), ("fsync", "f")],
    # A barrier covers all later changes of its names, and no other change of it.
    [("rename", "f", "g"), ("create", "f"), ("link", "g", "h"), ("link", "g", "k"),
     ("fsync", "f")],
    [("rename", "f", "g"), ("unlink", "g"), ("rename", "d/f", "h"), ("link", "h", "f"),
     ("fsync", "f")],
    [("mkdir", "e"), ("link", "f", "e/f"), ("rename", "f", "g"), ("create", "f"),
     ("unlink", "e/f"), ("fsync", "f")],
    [("rename", "f", "d/f"), ("rename", "d/f", "f"), ("rename", "f", "g"),
     ("create", "f"), ("fsync", "f")],
    [("rename", "f", "g"), ("append", "g", "B1"), ("create", "f"), ("fsync", "f")],
    # One of its two names suffices for the earlier changes of a name by the same file.
    [("create", "g"), ("link", "g", "d/g"), ("rename", "g", "f"),
     ("rename", "d/g", "g"), ("fsync", "d")],
    [("rename", "f", "d/f"), ("write", "f", "A1", 0), ("fsync", ""), ("unlink", "f"),
     ("fsync", "")],
    # The old directory of a rename covers the removal of the old name once the new one is durable.
    [("create", "h"), ("rename", "h", "d/f"), ("fsync", "d"), ("fsync", "")],
    # Attributes, directories and sizes of other inodes; fdatasync covers no attributes.
    [("chmod", "f", 0o600), ("fsync", "d/f")],
    [("chmod", "f", 0o600), ("fdatasync", "f")],
    [("mkdir", "e"), ("fdatasync", "f")],
    [("allocate", "f", 2, 4096), ("fsync", "d/f")],
    # It covers no name but the first one.
    [("create", "g"), ("rename", "g", "d/f"), ("fdatasync", "d/f")],
    # After sync nothing is unsynced.
    [("rename", "d/f", "f"), ("create", "d/f"), ("sync",), ("rename", "d/f", "f")],
    # A barrier covers the loss of a name that it gave for a time, if that is in its directory.
    [("rename", "f", "d/f"), ("unlink", "d/f"), ("fsync", "d")],
    [("rename", "f", "g"), ("rename", "g", "f"), ("unlink", "f"), ("fsync", "")],
    [("mkdir", "h"), ("rename", "d/f", "f"), ("rename", "f", "d/f"), ("fsync", "")],
    # A directory that was replaced does not return, and loses a name that another had for a time.
    [("mkdir", "h"), ("fsync", ""), ("rename", "d", "h"), ("fsync", "h"),
     ("rename", "h", "e")],
    [("mkdir", "h"), ("fsync", ""), ("rename", "d", "h"), ("rename", "h", "e"),
     ("fsync", "")],
    # The removal of a durable name ends when the file has that name again, also after another file.
    [("write", "f", "A1", 0), ("fsync", "f"), ("create", "k"), ("rename", "f", "g"),
     ("rename", "g", "h"), ("rename", "k", "f"), ("rename", "h", "f"),
     ("fsync", "")],
    # A name that was logged without replacing a file covers none.
    [("link", "f", "g"), ("fsync", "g"), ("rename", "d/f", "g"), ("fsync", "d"),
     ("rename", "g", "d/f")],
    # A barrier on a directory leaves data that durable truncations cut: at the least size of all.
    [("write", "g", "C3", 0), ("truncate", "g", 1), ("create", "d/g"), ("fsync", "d")],
    [("write", "g", "C3", 0), ("truncate", "g", 2), ("truncate", "g", 1),
     ("create", "d/g"), ("fsync", "d"), ("truncate", "g", 2)],
    [("write", "g", "C3", 0), ("truncate", "g", 1), ("truncate", "g", 2),
     ("create", "d/g"), ("fsync", "d")],
    [("write", "g", "A600", 1), ("truncate", "g", 500), ("create", "d/g"),
     ("fsync", "d"), ("truncate", "g", 700)],
    # A piece of the file that is neither data nor a size is left as it is.
    [("create", "h"), ("rename", "h", "d/f"), ("truncate", "d/f", 1),
     ("rename", "d/f", "f"), ("fsync", "f")],
    # Any change of its content or its creation puts a file into the log.
    [("link", "d/f", "g"), ("fsync", "g"), ("create", "h"), ("fsync", "h"),
     ("rename", "h", "g")],
    [("link", "d/f", "g"), ("fsync", "g"), ("append", "f", "B1"), ("fsync", "f"),
     ("rename", "f", "g")],
    [("link", "d/f", "g"), ("fsync", "g"), ("truncate", "f", 1), ("fsync", "f"),
     ("rename", "f", "g")],
    [("link", "d/f", "g"), ("fsync", "g"), ("allocate", "f", 2, 4096), ("fsync", "f"),
     ("rename", "f", "g")],
    # Only a truncation to a smaller size leaves an old tail, also if another one follows it.
    [("truncate", "f", 1), ("fsync", "f"), ("truncate", "f", 3), ("fsync", "f"),
     ("truncate", "f", 1), ("truncate", "f", 3)],
    [("chmod", "d/f", 0o600), ("truncate", "f", 1), ("fsync", "f"),
     ("truncate", "f", 3), ("fsync", "f"), ("truncate", "f", 1),
     ("truncate", "f", 3)],
    [("truncate", "f", 1), ("truncate", "f", 3), ("fsync", "f"), ("truncate", "f", 1),
     ("truncate", "f", 3)],
    [("truncate", "f", 1), ("fsync", "f"), ("allocate", "f", 0, 3)],
    # It brings back no byte beyond its size.
    [("truncate", "f", 1), ("fsync", "f"), ("truncate", "f", 2), ("truncate", "f", 3)],
    # A write to the file ends the old tail; an allocation, a rename and another file do not.
    [("truncate", "f", 1), ("fsync", "f"), ("write", "f", "B1", 0), ("fsync", "f"),
     ("truncate", "f", 3)],
    [("truncate", "f", 1), ("fsync", "f"), ("allocate", "f", 0, 1), ("fsync", "f"),
     ("truncate", "f", 3)],
    [("truncate", "f", 1), ("fsync", "f"), ("rename", "f", "g"), ("fsync", ""),
     ("truncate", "g", 3)],
    [("truncate", "f", 1), ("fsync", "f"), ("truncate", "d/f", 1), ("fsync", "d/f"),
     ("truncate", "d/f", 2)],
    [("write", "d/f", "A600", 0), ("truncate", "d/f", 1), ("fsync", "d/f"),
     ("truncate", "f", 5000)],
    # Names of a new directory come first, not those of one that moved.
    [("mkdir", "e"), ("rename", "d", "e/h")],
    [("rename", "d", "e"), ("rename", "f", "e/f"), ("fsync", "e/f")],
    # An allocation keeps no order with metadata; all other metadata do.
    [("truncate", "f", 1), ("allocate", "d/f", 0, 3)],
    [("rename", "d/f", "f"), ("create", "h"), ("fsync", "d")],
    [("create", "h"), ("unlink", "h"), ("create", "h"), ("rename", "h", "d/f"),
     ("chmod", "d/f", 0o600), ("link", "d/f", "h")],
    [("rename", "f", "d/f"), ("unlink", "d/f"), ("create", "f"),
     ("write", "d/f", "A1", 0)],
    # A new block is cleared by the size itself.
    [("write", "g", "A600", 0), ("truncate", "g", 1)],
    # Data in the block that a truncation keeps needs no size, though the size clears a new block.
    [("write", "g", "C3", 0), ("truncate", "g", 1), ("write", "g", "A1", 1)],
    # A durable name from which several renames led away, to here or to a name that it was not.
    [("rename", "d/f", "g"), ("rename", "g", "f"), ("unlink", "f")],
    [("rename", "d/f", "f"), ("rename", "f", "d/g")],
    [("write", "f", "A1", 0), ("unlink", "f"), ("rename", "d/f", "h"),
     ("rename", "h", "d/f"), ("unlink", "d/f")],
    [("unlink", "f"), ("unlink", "d/f"), ("create", "f"), ("rename", "f", "h"),
     ("rename", "h", "d/f"), ("unlink", "d/f")],
    [("mkdir", "h"), ("rename", "f", "d/f"), ("link", "d/f", "f"), ("unlink", "d/f"),
     ("rename", "f", "d/f"), ("unlink", "d/f"), ("fsync", "d"),
     ("create", "f")],
    # A synchronous write covers all data, zeros and sizes in its pages, and none in others.
    [("write", "f", "B2", 4095), ("write_synced", "f", "A1", 0)],
    [("write", "f", "A1", 4096), ("write_synced", "f", "A1", 0)],
    [("write", "f", "A1", 0), ("write_synced", "f", "A1", 4096)],
    [("write", "f", "A1", 4096), ("write_synced", "f", "A1", 4095)],
    [("truncate", "f", 1), ("write_synced", "f", "A1", 4096)],
    [("truncate", "f", 1), ("write_synced", "f", "A1", 0)],
    [("allocate", "f", 0, 4097), ("write_synced", "f", "A1", 0)],
    [("allocate", "f", 0, 4097), ("write_synced", "f", "A1", 4096)],
    [("append", "f", "B1"), ("allocate", "f", 0, 2), ("write_synced", "f", "A1", 4096)],
    [("append", "f", "B1"), ("truncate", "f", 4), ("write_synced", "f", "A1", 4096)],
    # Before and behind a gap: the end of a block as a size.
    [("write", "f", "A1", 0), ("write", "f", "B1", 8192), ("write", "f", "C1", 4096)],
    [("truncate", "f", 0), ("write", "f", "B1", 8192), ("write", "f", "C1", 4096)],
    [("allocate", "f", 0, 8193), ("write", "f", "C1", 4096)],
    [("truncate", "f", 9000), ("write", "f", "C1", 4096)],
    [("write", "f", "B1", 8192), ("write_synced", "f", "A1", 4096)],
    [("write", "f", "B1", 8192), ("write", "f", "C1", 4096), ("write_synced", "f", "A1", 4096)],
    [("write", "f", "B1", 8192), ("write", "f", "C1", 4096), ("truncate", "f", 1),
     ("write", "f", "B1", 8192), ("write", "f", "C1", 4096)],
    # A file that a rename has replaced is not synced, unless it has another name.
    [("rename_over_open", "f", "d/f", "B1")],
    [("create", "g"), ("rename_over_open", "f", "g", "B1"), ("fsync", "g")],
    [("link", "f", "g"), ("rename_over_open", "d/f", "f", "B1")],
    [("link", "f", "g"), ("unlink", "g"), ("rename_over_open", "d/f", "f", "B1")],
    # A barrier that covers nothing, because its file was replaced, changes no earlier rename.
    [("create", "h"), ("fsync", "h"), ("rename", "f", "h"), ("rename_over_open", "d/f", "h", "B1")],
    [("create", "h"), ("fsync", "h"), ("append", "f", "B1"), ("rename", "f", "h"),
     ("rename_over_open", "d/f", "h", "B1")],
    # A durable name that a link has given back is not removed by further renames.
    [("rename", "f", "d/f"), ("link", "d/f", "f"), ("rename", "d/f", "d/g")],
    [("rename", "f", "d/f"), ("link", "d/f", "f"), ("rename", "d/f", "d/g"), ("fsync", "f")],
    [("rename", "f", "g"), ("link", "g", "f"), ("unlink", "g"), ("fsync", "d")],
    # A file loses a name for the second time, which it got back by itself: no name for a time.
    [("link", "f", "g"), ("create", "h"), ("rename", "h", "f"), ("fsync", "f"),
     ("rename", "f", "h"), ("link", "g", "f"), ("unlink", "f"), ("create", "f"),
     ("unlink", "f"), ("fsync", "g")],
    # A rename of a synced file over one of two names is in parts once the other name is synced.
    [("link", "f", "g"), ("append", "d/f", "B1"), ("fsync", "d/f"), ("sync",),
     ("rename", "d/f", "g"), ("fsync", "f")],
    [("link", "f", "g"), ("sync",), ("append", "d/f", "B1"), ("fsync", "d/f"),
     ("rename", "d/f", "g"), ("write_synced", "f", "A1", 0), ("link", "f", "h"), ("fsync", "f")],
    # Renames of two directories are independent, unless both lead into another directory.
    [("mkdir", "e"), ("fsync", "e"), ("rename", "d", "h"), ("rename", "e", "d"), ("fsync", "d")],
    [("rename", "d", "h"), ("mkdir", "e"), ("fsync", "e"), ("rename", "h", "e/h")],
    # A file that moved away does not return.
    [("rename", "f", "g"), ("link", "d/f", "f"), ("rename", "g", "f")],
    [("rename", "f", "d/f"), ("rename", "d/f", "f"), ("rename", "f", "g"),
     ("write", "f", "A1", 0), ("fsync", "f"), ("create", "d/f")],
)  # fmt: skip
