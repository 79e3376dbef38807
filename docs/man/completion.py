#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Completion for bash, from what a tool prints for --help.

usage: completion.py OUT PROGRAM

The name of a value says what can stand there (samples/common/sample_options.h). So do the words of
the usage lines: URI, FILE, COMMAND, or a|b; "..." behind the last one says that there may be more.
A usage line that begins with another word is that of a command: what follows are its operands.
"""
import os
import re
import subprocess
import sys

KINDS = ("URI", "FILE", "COMMAND")


def options_of(text):
    """The options with the name of their value, which is empty for a flag, and those of them whose
    value may be left out."""
    part = re.search(r"^Options:\n((?:  .*\n)+)", text, re.M)
    if part is None:
        raise SystemExit("--help has no list of options")
    options, optional = {}, set()
    for line in part.group(1).splitlines():
        option = re.match(r"  (?:(-\w), )?(-[-\w]+)(?:\[=(\S+)\]| (\S+))?(?:  |$)", line)
        if option:
            letter, name, left_out, value = option.groups()
            options.update((word, left_out or value or "") for word in (letter, name) if word)
            optional.update([name] if left_out else [])
        elif not line.startswith("      "):
            raise SystemExit("an option of --help that cannot be read: " + line)
    return options, optional


def operands_of(text, name):
    """What the operands are, in order, as the usage lines have them, and those of each command."""
    usage = text.split("\n\n")[0]
    operands, commands = [], {}
    for line in usage.splitlines():
        words = line.split(name, 1)[-1]
        words = re.sub(r"-+\w[-\w]*( [A-Z]+)?", "", words)
        command = re.match(r" ([a-z]+) [A-Z]", words)
        found = commands.setdefault(command.group(1), []) if command else operands
        for word, more in re.findall(r"([\w|]+)(\.\.\.)?", words):
            kind = re.sub(r"\d+$", "", word)
            if kind in KINDS or re.fullmatch(r"\w+(\|\w+)+", word):
                found.append(kind + more)
    return operands, commands


def quoted(words):
    return " ".join("'%s'" % word for word in words)


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    out, program = sys.argv[1:]
    tool = os.path.basename(program)
    text = subprocess.run([program, "--help"], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout
    options, optional = options_of(text)
    valued = {option: value for option, value in options.items()
              if value and option not in optional}
    operands, commands = operands_of(text, tool)
    known = {
        "tool": tool,
        "name": tool.replace("-", "_"),
        "values": " ".join("[%s]='%s'" % pair for pair in valued.items()),
        "equals": " ".join("[%s]='%s'" % (option, options[option]) for option in sorted(optional)),
        "flags": quoted(option for option in options if option not in valued),
        "operands": quoted(operands),
        "commands": " ".join("[%s]='%s'" % (word, " ".join(own)) for word, own in commands.items()),
    }
    with open(os.path.join(os.path.dirname(__file__), "completion.bash.in"),
              encoding="ascii") as form:
        made = re.sub(r"@(\w+)@", lambda m: known[m.group(1)], form.read())
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, tool), "w", encoding="ascii") as script:
        script.write(made)


main()
