"""The journal of a disk: the image of one boot, and every operation since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

from sim.disk.cache.operation import Create, Operation
from sim.disk.crash.image import Image
from sim.errors import HarnessError


class Journal(Sequence[Operation]):
    """The operations of one lifetime, in order, and the image that they start from.

    Operation ``n`` is at index ``n - 1``. A journal does not depend on a persistence model:
    ``Disk.from_journal`` reads it under any.
    """

    __slots__ = ("image", "operations")

    def __init__(self, image: Image, operations: Iterable[Operation] = ()) -> None:
        self.image = image
        self.operations: list[Operation] = list(operations)

    @overload
    def __getitem__(self, index: int) -> Operation: ...
    @overload
    def __getitem__(self, index: slice) -> list[Operation]: ...
    def __getitem__(self, index: int | slice) -> Operation | list[Operation]:
        return self.operations[index]

    def __len__(self) -> int:
        return len(self.operations)

    @property
    def next_inode(self) -> int:
        """The number of the next inode after the last operation."""
        created = (each.inode + 1 for each in self.operations if isinstance(each, Create))
        return max((self.image.next_inode, *created))

    def check_image(self) -> None:
        """Raise ``HarnessError`` if a kill has left something unsynced in the image.

        It was cut for the model of the lifetime that left it, so a journal that starts from it
        depends on that model.
        """
        if self.image.unsynced:
            raise HarnessError(
                "the journal starts after a kill, so it holds for one persistence model only; "
                "use the journal of the lifetime before, and append this one to it"
            )
