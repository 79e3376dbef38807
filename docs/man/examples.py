# SPDX-License-Identifier: BSD-2-Clause
"""The examples of the pages, from docs/man/examples: the tests compile them.

An example is a function with one comment above, which says what the function shows. The page of a
call shows the first example of its header's file that uses the call, else of any file.
"""
import glob
import os
import re

FUNCTION = re.compile(r"^/\* (?P<text>(?:(?!\*/).)*?) \*/\n(?P<code>[a-z][^\n;]*\((?:[^;{}])*?\)\n\{\n.*?^\}\n)",
                      re.M | re.S)


class Examples:
    def __init__(self, folder):
        self.files = {}
        for path in sorted(glob.glob(os.path.join(folder, "*.c"))):
            with open(path, encoding="ascii") as source:
                text = source.read()
            header = "ndx_" + os.path.basename(path)[:-2] + ".h"
            self.files[header] = [(" ".join(m["text"].replace("\n * ", " ").split()), m["code"])
                                  for m in FUNCTION.finditer(text)]

    def of(self, call, header):
        """What the example shows, and its lines; None: there is none."""
        uses = re.compile(r"\b%s\(" % call)
        own = self.files.get(header, [])
        rest = [example for name in sorted(self.files) if name != header
                for example in self.files[name]]
        for text, code in own + rest:
            if uses.search(code):
                return text, code.rstrip("\n").split("\n")
        return None
