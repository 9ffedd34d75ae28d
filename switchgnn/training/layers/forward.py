"""Forward passes that replace those of a model's modules, which keep their types and names."""

import copy
from typing import Any

import torch
from torch import Tensor, nn


class Replaced:
    """The forward pass of one module; an instance attribute ``forward`` of it.

    A copy of the module, as of ``copy.deepcopy(model)``, gets one of its own, which shares what is
    the same for all. ``torch.save(model)`` writes the module without it, so the file loads
    anywhere, as a model that is not wrapped.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module: Any = module
        object.__setattr__(module, "forward", self)

    # Exchanges cannot be traced: a compiled model calls them in between.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def __call__(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        """Compute, as a module calls its forward pass."""
        return self.compute(*arguments, **named)

    def compute(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        """Return what the module returns."""
        return self.original(*arguments, **named)

    def original(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        """Return what the forward pass of the module's class returns."""
        return type(self.module).forward(self.module, *arguments, **named)

    def moved(self) -> None:
        """Forget what was made for the module that this was copied from."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Replaced":
        made = memo[id(self)] = copy.copy(self)
        made.module = copy.deepcopy(self.module, memo)
        made.moved()
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.module, "forward")


class Anywhere:
    """Constant tensors, copied once to the device of a model, which may move after wrapping."""

    def __init__(self, *tensors: Tensor) -> None:
        self._tensors = tensors
        self._there = tensors

    def on(self, device: torch.device) -> tuple[Tensor, ...]:
        """Return them on a device."""
        if self._there[0].device != device:
            self._there = tuple(each.to(device) for each in self._tensors)
        return self._there


def replaced(module: nn.Module) -> Any:  # noqa: ANN401
    """Return what replaces a module's forward pass, or None."""
    found = vars(module).get("forward")
    return found if isinstance(found, Replaced) else None
