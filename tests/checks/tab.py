#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Press the tab key in a real bash: what readline makes of a completion.

usage: tab.py PREFIX LINE EXPECTED [LINE EXPECTED]...

Types each LINE and a tab into an interactive bash that has sourced the completions below PREFIX; the
line has to become EXPECTED. Prints what else it became.
"""
import os
import pty
import select
import sys
import time

PATIENCE_S = 60
READY = "all-sourced\r\n$ "


class Shell:
    """An interactive bash on a terminal of its own."""

    def __init__(self, prefix):
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.environ.update(PS1="$ ", TERM="dumb",
                              PATH=os.path.join(prefix, "bin") + ":" + os.environ["PATH"])
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        folder = os.path.join(prefix, "share/bash-completion/completions")
        # the word is put together, so that the echo of the line is not taken for it
        self.write("bind 'set bell-style none'; for f in '%s'/*; do . \"$f\"; done; echo all-'sourced'\n" % folder)
        self.await_text(READY)

    def write(self, text):
        os.write(self.terminal, text.encode())

    def await_text(self, expected):
        """What came until the text was there; None if it did not come."""
        shown = ""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.1)[0]:
                shown += os.read(self.terminal, 65536).decode(errors="replace")
            if expected in shown:
                return None
        return shown

    def completes(self, line, expected):
        self.write(line + "\t")
        shown = self.await_text(expected)
        self.write("\x01\x0b")  # to the beginning of the line, and delete all of it
        return shown


def main():
    if len(sys.argv) < 4 or len(sys.argv) % 2 != 0:
        raise SystemExit(__doc__)
    shell = Shell(sys.argv[1])
    for line, expected in zip(sys.argv[2::2], sys.argv[3::2]):
        shown = shell.completes(line, expected)
        if shown is not None:
            print("bash makes of '%s<tab>' not '%s' but: %r" % (line, expected, shown))


main()
