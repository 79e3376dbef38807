#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Completion for bash, from what a tool prints for --help.

usage: completion.py OUT PROGRAM

The name of a value says what can stand there (samples/common/sample_options.h). So do the words of
the usage lines: URI, FILE, COMMAND, or a|b; "..." behind the last one says that there may be more.
"""
import os
import re
import subprocess
import sys

KINDS = ("URI", "FILE", "COMMAND")


def options_of(text):
    """The options with the name of their value, which is empty for a flag."""
    part = re.search(r"^Options:\n((?:  .*\n)+)", text, re.M)
    if part is None:
        raise SystemExit("--help has no list of options")
    options = {}
    for line in part.group(1).splitlines():
        option = re.match(r"  (-[-\w]+)(?: (\S+))?(?:  |$)", line)
        if option:
            options[option.group(1)] = option.group(2) or ""
        elif not line.startswith("      "):
            raise SystemExit("an option of --help that cannot be read: " + line)
    return options


def operands_of(text, name):
    """What the operands are, in order, as the usage lines have them."""
    usage = text.split("\n\n")[0]
    operands = []
    for line in usage.splitlines():
        words = line.split(name, 1)[-1]
        words = re.sub(r"-+\w[-\w]*( [A-Z]+)?", "", words)
        for word, more in re.findall(r"([\w|]+)(\.\.\.)?", words):
            kind = re.sub(r"\d+$", "", word)
            if kind in KINDS or re.fullmatch(r"\w+(\|\w+)+", word):
                operands.append(kind + more)
    return operands


def quoted(words):
    return " ".join("'%s'" % word for word in words)


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    out, program = sys.argv[1:]
    tool = os.path.basename(program)
    text = subprocess.run([program, "--help"], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout
    options = options_of(text)
    valued = {option: value for option, value in options.items() if value}
    known = {
        "tool": tool,
        "name": tool.replace("-", "_"),
        "values": " ".join("[%s]='%s'" % pair for pair in valued.items()),
        "flags": quoted(option for option, value in options.items() if not value),
        "operands": quoted(operands_of(text, tool)),
    }
    with open(os.path.join(os.path.dirname(__file__), "completion.bash.in"),
              encoding="ascii") as form:
        made = re.sub(r"@(\w+)@", lambda m: known[m.group(1)], form.read())
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, tool), "w", encoding="ascii") as script:
        script.write(made)


main()
