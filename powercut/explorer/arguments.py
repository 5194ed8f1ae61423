"""Arguments of ``explore``: a mistaken one is refused before anything runs."""

from __future__ import annotations

import os
from collections.abc import Callable

from powercut.explorer.limits import Limits
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, PersistenceModel, model_named
from sim.errors import HarnessError


def must_be_functions(workload: object, check: object) -> None:
    """Raise ``HarnessError`` unless both can be called; there may be no check."""
    for name, function in (("workload", workload), ("check", check)):
        if callable(function) or (function is None and name == "check"):
            continue
        hint = ""
        if isinstance(function, str):
            is_model = function in MODELS and name == "check"
            hint = (
                "; the model is the argument model=" if is_model else "; pass the function itself"
            )
        raise HarnessError(f"the {name} {function!r:.100} is not callable{hint}")


def name_of(workload: object) -> str:
    """Return the name of a workload for a sentence."""
    return str(getattr(workload, "__qualname__", workload))


def as_model(model: object) -> PersistenceModel:
    """Return a model that is given by its name or itself."""
    if isinstance(model, PersistenceModel):
        return model
    if not isinstance(model, str):
        raise HarnessError(
            f"model is {model!r:.100} and must be a PersistenceModel or a name: {', '.join(MODELS)}"
        )
    return model_named(model)


def check_of(workload: object, name: str) -> Callable[..., None] | None:
    """Return the attribute ``check`` of the workload ``name``, None if it has none."""
    check: Callable[..., None] | None = getattr(workload, "check", None)
    if check is not None and not callable(check):
        raise HarnessError(f"the check of {name} is not callable: {check!r}")
    return check


def limits_of(workload: object, name: str) -> Limits:
    """Return the attribute ``limits`` of the workload ``name``, or the default ones."""
    limits = getattr(workload, "limits", Limits())
    if not isinstance(limits, Limits):
        raise HarnessError(f"the limits of {name} are {limits!r}, and no powercut.Limits")
    return limits


def as_check(check: Callable[..., None] | None, workload: object) -> Callable[..., None] | None:
    """Return the check; one that is missing is the workload's own, if it has one."""
    return check_of(workload, name_of(workload)) if check is None else check


def as_limits(limits: object, workload: object) -> Limits:
    """Return the limits; those that are missing are the workload's own, or the default ones."""
    if limits is None:
        return limits_of(workload, name_of(workload))
    if not isinstance(limits, Limits):
        raise HarnessError(f"limits is {limits!r:.100} and must be a value of powercut.Limits")
    return limits


def as_image(image: object) -> Image:
    """Return the disk at the start; one that is missing is empty."""
    if image is None:
        return Image.empty()
    if not isinstance(image, Image):
        raise HarnessError(
            f"image is {image!r:.100} and must be an Image, such as image_of(directory)"
        )
    return image


def as_root(root: object) -> str:
    """Return the directory of the simulated disk as a text."""
    if not isinstance(root, str | os.PathLike):
        raise HarnessError(f"root is {root!r:.100} and must be an absolute path such as /disk")
    return os.fsdecode(root)
