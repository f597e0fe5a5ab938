"""Objects among a problem's inputs. The checker never holds one: it holds what one is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Made:
    """An object that `custom_kernel` receives, of a class that the guest owns under the name `kind`.

    `fields` are its attributes by name; see `sandbox.guest.objects` for the kinds there are.
    """

    kind: str
    fields: dict[str, Any]
