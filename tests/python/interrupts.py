# SPDX-License-Identifier: BSD-2-Clause
"""KeyboardInterrupt in any place of the module. Programs that tests start use it, too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import ndx


def _own(frame: FrameType) -> bool:
    """Is it a function of the module?"""
    file = frame.f_code.co_filename
    return "/ndx/_" in file or file.endswith("/ndx/aio.py")


def _inside(frame: FrameType | None) -> bool:
    """Is it a function of the module, or called by one?"""
    while frame is not None and not _own(frame):
        frame = frame.f_back
    return frame is not None


class Interrupt:
    """`with Interrupt(place) as interrupt:` raises KeyboardInterrupt in the place of that number,
    from 0, where the interpreter looks for signals: when a function begins, and after a call of C,
    whose result is lost then.

    at_wait -- called before a wait for an operation begins
    after   -- of the places count only those after the C function of that name
    own     -- count only what is in functions of the module, not in those that they call: asyncio
               loses wake-ups when it is interrupted itself
    """

    def __init__(
        self,
        place: int,
        *,
        at_wait: Callable[[], object] | None = None,
        after: str = "",
        own: bool = False,
    ) -> None:
        self.left = place
        self.at_wait = at_wait
        self.after = after
        self.inside = _own if own else _inside
        self.raised = False

    def __enter__(self) -> Interrupt:
        sys.setprofile(self._look)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        sys.setprofile(None)

    def _look(self, frame: FrameType, what: str, argument: Any) -> None:
        if what == "c_call" and self.at_wait is not None and argument.__name__ == "wait":
            if isinstance(argument.__self__, ndx._ndx.Operation):
                self.at_wait()
        counts = what == "c_return" and (not self.after or argument.__name__ == self.after)
        counts = counts or (what == "call" and not self.after)
        if counts and self.inside(frame):
            self.left -= 1
            if self.left < 0:
                sys.setprofile(None)
                self.raised = True
                raise KeyboardInterrupt
