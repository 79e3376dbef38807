#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Links of the pages: usage: links.py SOURCE [links]

Every relative link of a page leads to a file or folder of the tree, and its anchor to a heading
there; and, but for "links", every page that a source names as docs/NAME.md is there. Prints what
does not.
"""
import os
import re
import sys

FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
LINK = re.compile(r"\]\(([^()\s]+)\)")
NAMED = re.compile(r"(?<![\w/.-])docs/[\w/.-]+\.md\b")
SOURCES = (".c", ".h", ".cpp", ".hpp", ".def", ".py", ".sh", ".awk", ".jq", ".gp", ".pml", ".txt",
           ".in", ".cmake", ".yml", ".map", ".md")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def anchors(text):
    """Anchors as the usual viewers make them of headings."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", FENCE.sub("", text), re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        number = 0
        while name + ("-%d" % number if number else "") in found:
            number += 1
        found.add(name + ("-%d" % number if number else ""))
    return found


def broken_link(page, link, root):
    """Why a link does not resolve; None if it does."""
    path, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if os.path.relpath(target, root).startswith(".."):
        return "leads out of the tree"
    if not os.path.exists(target):
        return "leads to nothing"
    if anchor and target.endswith(".md") and anchor not in anchors(read(target)):
        return "names no heading there"
    return None


def main():
    if len(sys.argv) != 2 and sys.argv[2:] != ["links"]:
        raise SystemExit(__doc__)
    root = os.path.abspath(sys.argv[1])
    bad = links = 0
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f != ".git" and not (f == "build" and folder == root)]
        for name in sorted(files):
            path = os.path.join(folder, name)
            shown = os.path.relpath(path, root)
            if not name.endswith(SOURCES):
                continue
            text = read(path)
            if name.endswith(".md"):
                for link in LINK.findall(FENCE.sub("", text)):
                    if re.match(r"[a-z]+:", link):
                        continue
                    links += 1
                    why = broken_link(path, link, root)
                    if why:
                        bad += 1
                        print("%s: %s %s" % (shown, link, why))
            # The changelog names what was; the checks name what they plant.
            past = name == "CHANGELOG.md" or shown.startswith("tests/checks/")
            for page in NAMED.findall(text) if not past and len(sys.argv) == 2 else ():
                if not os.path.exists(os.path.join(root, page)):
                    bad += 1
                    print("%s: names %s, which is not there" % (shown, page))
    if bad == 0:
        print("%d links of pages, all of which resolve" % links)
    sys.exit(bad > 0)


main()
