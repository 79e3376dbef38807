#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""usage: tidy.py SOURCE BUILD JOBS

Runs clang-tidy over every file of SOURCE that BUILD compiles. A file that several targets compile
is looked at once for each set of macros that its text knows: other include paths, another
optimisation and macros that nobody reads add no finding.

A file that was clean is not looked at again while its content, the content of all headers that it
includes, those macros, .clang-tidy and clang-tidy itself stay the same. The hash of all that is the
name of an empty file in ${XDG_CACHE_HOME:-~/.cache}/ndx-tidy.

Most of the time is the static analyzer's, which gives a function up after 225,000 states of the
program. Here it does so after 75,000, its own limit for a quick look: one file of providers/ofi
takes 2.8 s instead of 8.1 s. $NDX_TIDY=whole looks at all files, with the analyzer's limit.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

MONTH = 30 * 86400
WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*")
ALWAYS = (b"_GNU_SOURCE", b"NDEBUG")  # system headers know them
SOONER = [f"--extra-arg={word}" for word in
          ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=75000")]
NOISE = re.compile(r"^(\d+ warnings? (treated as errors? )?generated|Suppressed|Use -header)")


def arguments_of(entry):
    """The compile command without the launcher in front of the compiler."""
    words = entry.get("arguments") or shlex.split(entry["command"])
    return words[1:] if os.path.basename(words[0]) == "ccache" else words


def without(words, *pairs):
    """The compile command without -c, and without these options and what follows each."""
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in pairs:
            skip = True
        elif word != "-c":
            kept.append(word)
    return kept


@functools.lru_cache(maxsize=None)
def changed_at(path):
    """When a file was written last."""
    return os.stat(path).st_mtime_ns


class Contents:
    """Hashes and words of files, each file read once."""

    def __init__(self):
        self.known = {}

    def of(self, path):
        """(hash, words) of one file."""
        if path not in self.known:
            text = pathlib.Path(path).read_bytes()
            self.known[path] = (hashlib.sha256(text).hexdigest(), set(WORD.findall(text)))
        return self.known[path]


class Compile:
    """One file as one target compiles it."""

    def __init__(self, entry, source, build):
        self.directory = entry["directory"]
        self.arguments = arguments_of(entry)
        self.file = os.path.normpath(os.path.join(self.directory, entry["file"]))
        self.source, self.build = source, build
        self.includes = None

    def is_ours(self):
        return self.file.startswith(f"{self.source}/") and not self.file.startswith(f"{self.build}/")

    def names_in(self, rule):
        """The files that a rule of make, as the compiler writes it, names behind the colon."""
        names = rule.replace("\\\n", " ").split()[1:]
        return [os.path.normpath(os.path.join(self.directory, n)) for n in names]

    def includes_when_built(self):
        """What the build's compiler wrote beside the object; None: there is none, or a file is newer."""
        if "-o" not in self.arguments:
            return None
        path = self.arguments[self.arguments.index("-o") + 1] + ".d"
        try:
            rule = pathlib.Path(self.directory, path)
            written = rule.stat().st_mtime_ns
            names = self.names_in(rule.read_text())
            fresh = all(changed_at(name) < written for name in names)
        except OSError:
            return None
        return names if names and fresh else None

    def ask_for_includes(self):
        """The file and all headers that it includes; None where the compiler does not say."""
        self.includes = self.includes_when_built()
        if self.includes is not None:
            return self
        words = without(self.arguments, "-o")
        said = subprocess.run([words[0], "-M", "-MT", "x"] + words[1:], cwd=self.directory,
                              capture_output=True, text=True, check=False)
        if said.returncode == 0:
            self.includes = self.names_in(said.stdout)
        return self

    def matters(self, word, contents):
        """Can this word of the command change what is found? A macro does where the text has it."""
        if self.includes is None or not word.startswith("-D"):
            return not re.match("-[IOgf]", word)
        name = word[2:].split("=")[0].encode()
        return name in ALWAYS or any(name in contents.of(path)[1] for path in self.includes)

    def essence(self, contents):
        """What tells this compilation from another one of the same file, wherever the tree is."""
        words = without(self.arguments, "-o", "-I", "-isystem")
        words = [word for word in words if self.matters(word, contents)]
        text = "\0".join([self.file, *words])
        return text.replace(str(self.build), "@BUILD@").replace(str(self.source), "@SOURCE@")

    def key(self, common, contents):
        """The name under which the cache knows that the file is clean, or None."""
        if self.includes is None:
            return None
        hashes = [contents.of(path)[0] for path in self.includes]
        return hashlib.sha256("\0".join([common, self.essence(contents), *hashes]).encode()).hexdigest()

    def look(self, limits):
        """What clang-tidy finds, or an empty text."""
        entry = {"directory": self.directory, "file": self.file, "arguments": self.arguments}
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps([entry]))
            said = subprocess.run(["clang-tidy", "-p", folder, "--quiet", *limits, self.file],
                                  capture_output=True, text=True, check=False)
        if said.returncode == 0:
            return ""
        errors = [line for line in said.stderr.splitlines() if not NOISE.match(line)]
        return "\n".join([said.stdout, *errors, f"{self.file}: clang-tidy ended with {said.returncode}\n"])


def once_each(compiles, contents):
    """Each file once for each set of macros that its text knows."""
    chosen = {}
    for one in compiles:
        chosen.setdefault(one.essence(contents), one)
    return [chosen[text] for text in sorted(chosen)]


def prepare_cache(whole):
    """The folder, without what nobody has needed for a month; None: nothing is remembered."""
    if whole:
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = pathlib.Path(home) / "ndx-tidy"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        for file in cache.iterdir():
            if file.stat().st_mtime < time.time() - MONTH:
                file.unlink(missing_ok=True)
    except OSError as error:
        print(f"no cache: {error}")
        return None
    return cache


def check(one, common, contents, cache, limits):
    """(was it looked at, what clang-tidy found)"""
    name = one.key(common, contents) if cache else None
    if name and (cache / name).exists():
        (cache / name).touch()
        return False, ""
    found = one.look(limits)
    if name and not found:
        (cache / name).touch()
    return True, found


def main():
    source, build, jobs = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    os.nice(19)  # tests and the guest, which wait for events, go first
    compiles = [Compile(entry, source, build)
                for entry in json.loads((build / "compile_commands.json").read_text())]
    compiles = [one for one in compiles if one.is_ours()]
    if not compiles:
        print(f"no file of {source} in {build}/compile_commands.json: this check sees nothing")
        return 1
    whole = os.environ.get("NDX_TIDY") == "whole"
    cache = prepare_cache(whole)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True)
    common = "\0".join([version.stdout, str(os.stat(shutil.which("clang-tidy")).st_mtime),
                        (source / ".clang-tidy").read_text(), pathlib.Path(__file__).read_text()])
    contents = Contents()
    looked, bad = 0, False
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        files = once_each(pool.map(Compile.ask_for_includes, compiles), contents)
        for was_looked_at, found in pool.map(
                lambda one: check(one, common, contents, cache, [] if whole else SOONER), files):
            looked += was_looked_at
            if found:
                bad = True
                print(found, end="", flush=True)
    if not bad:
        print(f"{len(files)} files, no finding; {looked} looked at, the others unchanged since they "
              "were clean")
    return int(bad)


sys.exit(main())
