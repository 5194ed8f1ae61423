"""Every rule of the lazy engine is broken once, and the laws of ``lazy_law.py`` notice it.

A mutant replaces some lines of one function. Rules of one crash need pairs without crashes of
the check, the others need those.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from textwrap import dedent
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

from powercut.explorer.lazy import footprint
from powercut.explorer.lazy.boot import Boot
from powercut.explorer.lazy.crash_sites import crash_sites
from powercut.explorer.lazy.crashes import Crashes
from powercut.explorer.lazy.tree import Node
from powercut.explorer.lazy.unit_call import UnitCall
from powercut.explorer.lazy.units import Units
from powercut.explorer.lazy.walk import Walk
from powercut.explorer.page_cache import changes_without_pieces
from powercut.fuzz.source_patch import SourcePatch
from sim.disk.cache.lazy_inode import LazyEntries, LazyInode
from sim.disk.crash.persistence import MODELS
from sim.disk.crash.undecided import (
    after_crash,
    box,
    content,
    dropped_pages,
    factor,
    names,
    unsynced_above,
)
from sim.disk.crash.undecided.factor import Factor
from sim.disk.crash.undecided.layer import Layer
from sim.disk.crash.undecided.progress import UNLIMITED, Progress
from sim.disk.crash.unsynced import Unsynced
from sim.errors import HarnessError
from tests.litmus.lazy_examples import (
    APPENDED,
    BRANCHED_LATER,
    CHANGED,
    COMES_BACK,
    CUT,
    CUT_AFTER_A_PART_OF_A_WRITE,
    DROPPED,
    DROPPED_BY_THE_NEXT_BOOT,
    DROPPED_IN_A_UNIT,
    DROPPED_PAGE,
    DROPPED_WITH_A_TRUNCATION,
    EXTENDED,
    FAILED,
    FAR_WRITE,
    FREED,
    GROWN,
    LINKED,
    LINKS_OF_DIRECTORY,
    LOG_TREE,
    MOVED,
    OLD_TAIL,
    OUT_OF_THE_LOG,
    OVERTAKES,
    OVERWRITTEN,
    PARENT_OF_A_MOVED,
    READ_AGAIN,
    REMOVED,
    REMOVED_NAME,
    REPLACED,
    RETURNED_BY_A_RENAME,
    RETURNED_NAME,
    SURPLUS,
    SYNCED,
    TAKEN_TWICE,
    TORN_IN_UNITS,
    TORN_TWICE,
    TRUNCATED,
    TWO_UNITS,
    UNIT_BEHIND_A_NAME,
    UNIT_BEHIND_A_WRITE,
    UNIT_THAT_WRITES,
    UNWRITTEN,
    WAY_OF_SOME,
    WRITTEN,
    WRITTEN_TWICE,
)
from tests.litmus.lazy_law import Pair, nested_crashes, one_crash, pair

PAIRS = 200
_NOTICED = (AssertionError, HarnessError, KeyError, ValueError)


class Mutant(NamedTuple):
    """Replaces the lines ``old`` of a function by ``new``.

    ``example`` is a pair that shows the difference, where random ones seldom do, and ``nested``
    the number of crashes of the check that it takes.
    """

    rule: str
    function: Callable[..., Any]
    old: str
    new: str
    nested: int = 0
    example: Pair | None = None


MUTANTS = (
    Mutant("predecessors survive", Progress._spread, "survived |= layer.order[index]", "pass"),
    Mutant("followers are lost", Progress._spread, "lost |= layer.followers[index]", "pass"),
    Mutant("tears are counted", Progress.limit,
           "tears = self.tears - (is_torn and not was_torn)", "tears = self.tears",
           example=TORN_TWICE),
    Mutant("without tears left a piece is whole or lost", Progress.limit,
           "if not (self.tears or was_torn):", "if False:", example=TORN_TWICE),
    Mutant("stale bytes need a creation and a truncation", Layer._needed_by_stale,
           "return [self.durable + each for each in needed if each is not None]", "return []",
           example=CUT),
    Mutant("stale bytes show in the place of a lost piece", Progress.can_be_stale,
           "if needed is None or (self.stale | self.not_stale) >> index & 1:", "if True:"),
    Mutant("a size that grows counts only if it is larger", content.size_at,
           "if not isinstance(micro, SetSize) and _grown_to(micro) <= found:", "if False:"),
    Mutant("a truncation ends the search for a size", content.size_at,
           "return min(max(found, micro.size), cap)", "found = max(found, micro.size)",
           example=TRUNCATED),
    Mutant("a size is not larger than asked for", content.size_at,
           "return min(max(found, 0 if inode is None else inode.size), cap)",
           "return max(found, 0 if inode is None else inode.size)", example=FAR_WRITE),
    Mutant("a torn write keeps its first bytes", content._Events._mixed,
           "return new[:kept] + below[kept:]", "return below"),
    Mutant("a tear is decided where a byte changes", content._Events._mixed,
           "return Decision(self._level, index, ((kept + 1, high), (low, kept)))", "return below"),
    Mutant("a write that changes bytes is decided", content._Events._mixed,
           "return Decision(self._level, index, ((1, 1), (0, 0))) if changes else below",
           "return below"),
    Mutant("freed blocks read as zeros", content._written,
           "yield _Change(start, sys.maxsize)", "pass", example=COMES_BACK),
    Mutant("attributes are those of the last change", content.attributes,
           "if changed is not None:", "if False:", example=CHANGED),
    Mutant("a name that departed is gone", names._entry_after,
           "return _entry_after(stack, level, name, count - 1, departed | {micro.number})",
           "return _entry_after(stack, level, name, count - 1, departed)"),
    Mutant("a name returns to an inode that exists", names._after_return,
           "return micro.returns_to if exists else 0", "return micro.returns_to",
           example=RETURNED_NAME),
    Mutant("a name that changes hands is there", names._is_there_after,
           "if survived is not False and not arrives:", "if False:", example=REMOVED_NAME),
    Mutant("links are names that are left", names.links,
           "total += (found == number) - (before == number)", "total += found == number"),
    Mutant("a directory is in its last place", names.parent, "if survived:", "if True:",
           example=MOVED),
    Mutant("an inode is met once", box._met, "if number in box.numbers:", "if False:",
           example=LINKED),
    Mutant("a crash is new if a new piece survives", after_crash._new_states,
           "yield arrives", "pass"),
    Mutant("a crash is new if a new piece is stale", after_crash._new_states,
           "yield stale", "pass"),
    Mutant("a failed barrier allows more", crash_sites,
           "if unsynced.allows_more:", "if False:",
           example=DROPPED),
    Mutant("the program reads what it wrote", LazyInode.write,
           "self._changes = (*self._changes, (offset, offset + len(data), data))", "pass",
           example=WRITTEN),
    Mutant("the program reads zeros where it extended a file", LazyInode._on_disk,
           "known = end if self._disk_size is None else max(min(end, self._disk_size), start)",
           "known = end", example=GROWN),
    Mutant("the program reads its last write to a place", LazyInode.stored,
           "for first, last, written in reversed(self._changes):",
           "for first, last, written in self._changes:", example=OVERWRITTEN),
    Mutant("a name that the program removed is gone", LazyEntries.delete,
           "return self.set(name, 0)", "return self", example=REMOVED),
    Mutant("a reboot drops what lies beyond the end", content._booted,
           "most = _stored_until(stack, level, number)", "most = 0",
           nested=1, example=EXTENDED),
    Mutant("also what the platter holds beyond the end", content._stored_until,
           "most = max(most, inode.stored_end)", "pass", nested=1, example=SURPLUS),
    Mutant("operations name the inodes of each box", after_crash._renumbered,
           "replaced=real(operation.replaced),", "replaced=operation.replaced,",
           nested=1, example=REPLACED),
    Mutant("a kill keeps the page cache", after_crash.after_kill,
           "changes += _page_changes(operations, lifetime.dropped)", "pass", nested=1),
    Mutant("a kill carries unsynced pieces over", after_crash.after_kill,
           "carried=unsynced.carried_over(len(operations)),", "carried=(),",
           nested=2, example=APPENDED),
    Mutant("a step with another answer becomes a branch", Node.descend,
           "if [*parts] != [step.answer]:", "if step.answer not in parts:"),
    Mutant("what is behind a step is behind its answer", Node.split,
           "below = Node(self, step.answer, self.steps[number + 1 :], self.end)",
           "below = Node(self, step.answer, self.steps[number:], self.end)"),
    Mutant("nodes are behind the branch that was made last", Node.split,
           "node.before = below", "pass", example=BRANCHED_LATER),
    Mutant("an execution is answered as on its path", Node.path,
           "return [step for part in reversed(parts) for step in part]",
           "return [step for part in parts for step in part]"),
    Mutant("a recovery is crashed at all of its operations", Walk._crash,
           "done = [operation for step in steps for operation in step.operations]",
           "done = []", nested=1, example=WRITTEN_TWICE),
    Mutant("a kill keeps the durable pieces", after_crash.after_kill,
           "durable=tuple(lifetime.durable),", "durable=(),", nested=2, example=SYNCED),
    Mutant("a name returns to the inode that had it", names._entry_after,
           "if not isinstance(micro, ForgetName) and micro.returns_to:", "if False:",
           example=RETURNED_BY_A_RENAME),
    Mutant("an inode that departed since does not return", names._entry_after,
           "return 0 if found in departed else found", "return 0", example=RETURNED_BY_A_RENAME),
    Mutant("a lost arrival of an inode that departed changes nothing", names._entry_after,
           "return found if found == 0 else survived", "return 0", example=TAKEN_TWICE),
    Mutant("a moved directory is where the rename has put it", names.parent,
           "return given_name(micro)[0]", "return micro.directory", example=PARENT_OF_A_MOVED),
    Mutant("links of a directory are its subdirectories", names.directory_links,
           "total += is_directory(stack, found)", "total += 1", example=LINKS_OF_DIRECTORY),
    Mutant("bytes that were cut off return with the size", content._written,
           "if tail:", "if False:", example=OLD_TAIL),
    Mutant("a failed sync of the check allows more", unsynced_above._lifetime,
           "if unsynced.allows_more:", "if False:", nested=1, example=FAILED),
    Mutant("a barrier may allow more in a recovery", changes_without_pieces,
           "return changes or (nested and (unsynced.allows_more or orders_later))",
           "return changes", nested=1, example=LOG_TREE),
    Mutant("also if it only takes a file out of the log", changes_without_pieces,
           "orders_later = isinstance(operation, Sync) and unsynced.has_log",
           "orders_later = False",
           nested=1, example=OUT_OF_THE_LOG),
    Mutant("a barrier that overtakes allows more", Unsynced._sync,
           "self.allows_more |= overtakes(self._ordering, durable)", "pass", example=OVERTAKES),
    Mutant("a part of a write may survive a kill and a power cut", Crashes.during,
           "if not first and last.phase is Phase.DURING and not self._model.cuts_pages:",
           "if False:", nested=1, example=CUT_AFTER_A_PART_OF_A_WRITE),
    Mutant("a page that was dropped is as on the platter", LazyInode.replace_blocks,
           "self.write(index * BLOCK_BYTES, block)", "pass", example=DROPPED_PAGE),
    Mutant("also in the page cache after a kill", after_crash._page_changes,
           "for block, data in next(contents).items():", "for block, data in ():",
           nested=1, example=DROPPED_PAGE),
    Mutant("also if the boot before has lost it", Boot.has_lost_data,
           "return number < FIRST_NEW and bool(self._ask(Question(Property.LOST_DATA, number)))",
           "return False", nested=1, example=DROPPED_BY_THE_NEXT_BOOT),
    Mutant("with what is unsynced", unsynced_above._UnsyncedAbove._written_back,
           "stack = self._platter.below(self.ordering)", "stack = self._platter._now()",
           example=DROPPED_WITH_A_TRUNCATION),
    Mutant("in the file of each box", dropped_pages.split_by_pages,
           "operations = renumbered(question.operations, box, FIRST_NEW)",
           "operations = question.operations", example=DROPPED_PAGE),
    Mutant("a barrier that fails changes what a unit reads in dropped pages", footprint.written,
           "case Sync():", "case _ if hasattr(operation, 'data_only'):",
           nested=1, example=DROPPED_IN_A_UNIT),
    Mutant("a block with data is stored", content._block_on_layer,
           "return not change.frees", "return False", nested=1, example=UNWRITTEN),
    Mutant("a block that was freed is not", content._block_on_layer,
           "return not change.frees", "return True", nested=1, example=FREED),
    Mutant("a block whose data is undecided is decided", content._block_on_layer,
           "if high:", "if False:", nested=1, example=UNWRITTEN),
    Mutant("stale bytes are stored too", content._block_on_layer,
           "if progress.can_be_stale(layer, index):", "if False:", nested=1, example=UNWRITTEN),
    Mutant("a reboot drops the blocks beyond the end", content.has_block,
           "length = size_at(stack, level - 1, number, start + 1) if level else start + 1",
           "length = start + 1", nested=1, example=UNWRITTEN),
    Mutant("a block of the platter is stored", content.has_block,
           "return inode is not None and inode.has_block(block)", "return False",
           nested=1, example=FREED),
    Mutant("a unit that reads what the check wrote has no own tree", footprint.are_disjoint,
           "real = {(changed_numbers[inode - 1], name) for inode, name in changed}",
           "real = set()", example=UNIT_BEHIND_A_WRITE),
    Mutant("names depend on each entry", footprint.are_disjoint,
           "named = {inode for inode, name in real if name != ITSELF}", "named = set()",
           example=UNIT_BEHIND_A_NAME),
    Mutant("a unit that writes has no own tree", UnitCall.execute,
           "return WITHIN if disk.journal else self._pickled(found)", "return self._pickled(found)",
           example=UNIT_THAT_WRITES),
    Mutant("a unit names inodes by itself", Units._parts,
           "yield answer, part._replace(numbers=box.numbers)", "yield answer, part",
           example=TWO_UNITS),
    Mutant("a question divides a factor by its ways", Factor.has,
           "return level < len(self.pieces) and bool(self.pieces[level] >> piece & 1)",
           "return False", example=READ_AGAIN),
    Mutant("a way decides the pieces of its factor only", factor._with_part,
           "others = ~pieces", "others = 0", example=WAY_OF_SOME),
    Mutant("a factor keeps the number of torn pieces", factor.keeps_tears,
           "new.tears == old.tears or new.tears > _MANY_TEARS", "True", example=TORN_IN_UNITS),
)  # fmt: skip


def _code(mutant: Mutant) -> CodeType:
    """Return the code of the function with the mutant's lines."""
    function = mutant.function
    assert isinstance(function, FunctionType), mutant.rule
    source = dedent(inspect.getsource(function))
    changed = SourcePatch(function.__module__, mutant.old, mutant.new).apply(source)
    module = compile(f"from __future__ import annotations\n{changed}", mutant.rule, "exec")
    (code,) = (each for each in module.co_consts if isinstance(each, CodeType))
    return code


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.rule for mutant in MUTANTS])
def test_a_broken_rule_is_noticed(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutant.function, "__code__", _code(mutant))
    with pytest.raises(_NOTICED):
        _judge(mutant)


def _judge(mutant: Mutant) -> None:
    pairs = [pair(seed, 7 - 2 * mutant.nested, writes=seed % 2 == 0) for seed in range(PAIRS)]
    for number, each in enumerate([mutant.example] if mutant.example else pairs):
        for name in ("posix", "btrfs", "ext4-writeback", "ext4", "scc"):
            if mutant.nested:
                nested_crashes(each, MODELS[name], mutant.nested)
            else:
                is_torn = mutant.example in (TORN_TWICE, TORN_IN_UNITS)
                tears = 1 if is_torn else (UNLIMITED, 1, 0)[number % 3]
                one_crash(each, MODELS[name], tears)
