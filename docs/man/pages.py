#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Manual pages from the comments of the public headers.

usage: pages.py headers VERSION OUT MAP... HEADER...
                                                section 3: a page for each call and each header; a
                                                library's MAP says which headers belong to it
       pages.py tool VERSION OUT PROGRAM        section 1: from what PROGRAM --help prints
       pages.py overview VERSION OUT TEXT HEADER...
                                                section 7: from TEXT, with the list of the headers and
                                                with the statuses of status.h

The page of a call has an example (docs/man/examples), and what its comment says by naming another
call (models.py).

The comments are written for people who read the header, so the rules are few: an empty line ends a
paragraph, " - " and " 1. " begin an item, | begins a table row, @param, @retval and @return begin a
term, "Thread safety:" begins the remark on threads and blocking.
"""
import os
import re
import subprocess
import sys
import textwrap
import time

sys.dont_write_bytecode = True  # the source tree stays as it is
from examples import Examples  # noqa: E402
from models import Models  # noqa: E402

MANUAL = "NDX Programmer's Manual"


def escape(text):
    """Text of a page: no backslash, no minus and no quotes that groff would change."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return text.replace("'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti").replace("`", "\\(ga")


def styled(text):
    """@p NAME in italics, `code`, **strong** and the names of calls in bold."""
    out = []
    marks = re.compile(r"@p (\*?\w+)|`([^`]+)`|\*\*([^*]+)\*\*|\b(ndx_\w+)\(\)")
    at = 0
    for m in marks.finditer(text):
        out.append(escape(text[at:m.start()]))
        if m.group(1):
            out.append("\\fI" + escape(m.group(1)) + "\\fP")
        elif m.group(4):
            out.append("\\fB" + escape(m.group(4)) + "\\fP(3)")
        else:
            out.append("\\fB" + escape(m.group(2) or m.group(3)) + "\\fP")
        at = m.end()
    out.append(escape(text[at:]))
    return "".join(out)


def filled(text):
    """A paragraph, in lines that are short and that groff does not take for requests."""
    lines = textwrap.wrap(styled(" ".join(text.split())), 76, break_long_words=False,
                          break_on_hyphens=False)
    return [("\\&" + line if line[0] in ".'" else line) for line in lines]


def verbatim(lines):
    lines = [escape(line.replace("\t", "        ")) for line in lines]
    return [("\\&" + line if line[:1] in (".", "'") else line) for line in lines]


def block(lines):
    return [".PP", ".in +4n", ".nf"] + verbatim(lines) + [".fi", ".in"]


def header_of(name, section, version, source):
    stamp = int(os.environ.get("SOURCE_DATE_EPOCH") or os.stat(source).st_mtime)
    date = time.strftime("%Y-%m-%d", time.gmtime(stamp))
    return ['.\\" Made by docs/man/pages.py; do not edit.',
            '.TH "%s" %s "%s" "NDX %s" "%s"' % (name, section, date, version, MANUAL)]


def write(out, name, lines):
    with open(os.path.join(out, name), "w", encoding="ascii") as page:
        page.write("\n".join(lines) + "\n")


# ---- comments ----

def body_of(comment):
    """The lines of a comment without its frame."""
    lines = comment[3:-2].split("\n")
    lines = [re.sub(r"^\s*\* ?", "", line) if i else line.strip() for i, line in enumerate(lines)]
    return [line.rstrip() for line in lines]


class Doc:
    """A comment, taken apart."""

    def __init__(self, lines):
        self.text = []      # paragraphs: lists of lines
        self.params = []    # (names, text)
        self.retvals = []   # (names, text)
        self.returns = ""
        self.notes = []     # paragraphs behind the terms
        self.safety = ""
        self.inherited = []  # (call, its Doc): models.py
        self.parse(lines)

    def parse(self, lines):
        term = None
        para = []
        for line in lines + [""]:
            tag = re.match(r"@(param(?:\[[a-z,]+\])?|retval|return)\s+(.*)", line)
            if tag or not line:
                self.end_paragraph(para)
                para = []
            if tag:
                term = self.begin_term(tag.group(1), tag.group(2))
            elif not line:
                term = None
            elif term is not None:
                term[-1] += " " + line.strip()
            else:
                para.append(line)

    def begin_term(self, kind, rest):
        if kind == "return":
            entry = ["return", rest]
            self.returns_entry = entry
            return entry
        pattern = r"((?:NDX_\w+)(?:, NDX_\w+)*)\s*(.*)" if kind == "retval" else \
            r"((?:\w+)(?:, \w+)*)\s*(.*)"
        term = re.match(pattern, rest)
        if term is None:
            raise SystemExit('"@%s %s" is not "@%s NAME text"' % (kind, rest, kind))
        entry = list(term.groups())
        (self.retvals if kind == "retval" else self.params).append(entry)
        return entry

    def end_paragraph(self, para):
        if not para:
            return
        if para[0].startswith("Thread safety:"):
            self.safety = " ".join(para)
        elif self.params or self.retvals or hasattr(self, "returns_entry"):
            self.notes.append(para)
        else:
            self.text.append(para)

    def finish(self):
        self.returns = getattr(self, "returns_entry", ["", ""])[1]
        return self

    def first_sentence(self):
        text = " ".join(self.text[0]) if self.text else ""
        text = re.sub(r"\s*\((IND2|ND_|ND2|Nd|Create)[^)]*\)", "", re.sub(r"\s+", " ", text))
        m = re.match(r"((?:e\.g\.|i\.e\.|[^.]|\.(?!\s|$))+)", text)
        return m.group(1) if m else text


def rendered(para):
    """One paragraph of a comment: a table, items, or text."""
    if para[0].lstrip().startswith("|"):
        return block(para)
    out = [".PP"]
    text = []
    for line in para:
        item = re.match(r"\s+(-|\d+\.) (.*)", line)
        if item:
            out += filled(" ".join(text)) if text else []
            text = [item.group(2)]
            bullet = "*" if item.group(1) == "-" else item.group(1)
            out.append(".IP %s 4" % bullet)
        else:
            text.append(line)
    return out + filled(" ".join(text))


def name_line(name, brief):
    brief = re.sub(r"`|@p |\*\*", "", brief).rstrip(".")
    if len(brief) > 1 and brief[0].isupper() and not brief[1].isupper():
        brief = brief[0].lower() + brief[1:]
    return [".SH NAME", escape(name) + " \\- " + escape(brief)]


# ---- headers ----

class Item:
    """A declaration with its comment."""

    def __init__(self, kind, name, code, doc, lines):
        self.kind, self.name, self.code, self.doc, self.lines = kind, name, code, doc, lines
        # An inline call of the object's functions, which set no text of a failure
        self.data_path = False


def declaration(text, at):
    """The declaration that begins at `at`, and where it ends. A function's body is left out."""
    depth = 0
    begin = at
    in_comment = False
    while at < len(text):
        if in_comment:
            in_comment = not text.startswith("*/", at)
        elif text.startswith("/*", at):
            in_comment = True
        elif text[at] == "{":
            if depth == 0 and re.search(r"\)\s*$", text[begin:at]):
                return text[begin:at].strip() + ";", at
            depth += 1
        elif text[at] == "}":
            depth -= 1
        elif text[at] == ";" and depth == 0:
            return text[begin:at + 1].strip(), at + 1
        elif text[at] == "\n" and text[begin:at].lstrip().startswith("#define") and \
                text[at - 1] != "\\":
            return text[begin:at].strip(), at
        at += 1
    raise SystemExit("a declaration does not end: " + text[begin:begin + 60])


def parse_header(path):
    """The text of @file, and everything that has a comment."""
    with open(path, encoding="utf-8") as source:
        text = source.read()
    overview = None
    items = []
    at = 0
    while True:
        begin = text.find("/**", at)
        if begin < 0:
            return overview, items
        end = text.index("*/", begin) + 2
        lines = body_of(text[begin:end])
        if text.startswith("/**<", begin):
            at = end
        elif any("@file" in line for line in lines):
            overview = Doc([line.replace("@file", "").strip() if "@file" in line else line
                            for line in lines if line != "@file"]).finish()
            at = end
        else:
            code, at = declaration(text, end)
            items.append(classify(code, lines))
            items[-1].data_path = re.match(r"\{\s*return \w+->ops->", text[at:]) is not None


def classify(code, lines):
    doc = Doc(lines).finish()
    flat = " ".join(code.split())
    if flat.startswith("typedef"):
        return Item("type", re.search(r"\b(ndx_\w+)\b(?=\)?\s*\()", flat).group(1), code, doc, lines)
    if flat.startswith("#define"):
        return Item("macro", flat.split()[1].split("(")[0], code, doc, lines)
    if re.match(r"(struct|enum|union) \w+ ?\{", flat):
        return Item("type", flat.split()[1], code, doc, lines)
    function = re.match(r"[^(]*?\b(ndx_\w+)\s*\(", flat)
    if function:
        return Item("call", function.group(1), code, doc, lines)
    return Item("data", flat.split()[-1].rstrip(";"), code, doc, lines)


def prototype(item):
    """As in C, without what only the compiler needs; continued lines under the first argument."""
    flat = " ".join(re.sub(r"/\*.*?\*/", "", item.code, flags=re.S).split())
    flat = re.sub(r"^static inline ", "", flat)
    head, rest = flat.split("(", 1)
    args = re.split(r",\s*", rest.rsplit(")", 1)[0])
    indent = " " * 8
    lines = [head + "("]
    for i, arg in enumerate(args):
        piece = arg + (", " if i + 1 < len(args) else ");")
        if len(lines[-1]) + len(piece.rstrip()) > 76:
            lines.append(indent)
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def terms(entries):
    out = []
    for names, text in entries:
        out += [".TP", "\\fB" + escape(names) + "\\fP"] + (filled(text) or ["\\&"])
    return out


def returned(item):
    """What stands under RETURN VALUE: success and everything that is no failure."""
    flat = " ".join(item.code.split())
    fine = [e for e in item.doc.retvals if not e[0].startswith("NDX_E_")]
    bad = [e for e in item.doc.retvals if e[0].startswith("NDX_E_")]
    out = [".SH RETURN VALUE"]
    if re.match(r"(static inline )?void \w", flat):
        return out + ["None."], bad
    out += terms(fine)
    status = re.match(r"(static inline )?enum ndx_status ", flat)
    if status and not fine:
        out += [".PP"] + filled("NDX_OK, or what ERRORS lists." if bad else "NDX_OK.")
    if item.doc.returns:
        out += [".PP"] + filled(item.doc.returns[0].upper() + item.doc.returns[1:])
    if status:
        out += [".PP"] + filled(
            "The call belongs to the data path: it sets no text for ndx_last_error(). "
            "ndx_status_text() says what a code means." if item.data_path else
            "ndx_last_error() has the text of a failure; ndx_status_text() says what a code means.")
    elif not item.doc.returns:
        out += filled(item.doc.first_sentence().rstrip(".") + ".")
    return out, bad


def see_also(item, header):
    text = " ".join(item.lines)
    names = {n for n in re.findall(r"\b(ndx_\w+)\(\)", text) if n != item.name}
    if not item.data_path:
        names |= {"ndx_last_error"} - {item.name}
    names = sorted(names)
    pages = ["\\fB%s\\fP(3)" % escape(n) for n in [header] + names]
    return [".SH SEE ALSO"] + [page + ("," if i + 1 < len(pages) else "")
                               for i, page in enumerate(pages)]


def example_of(item, header, examples):
    example = examples.of(item.name, header)
    if example is None:
        raise SystemExit("docs/man/examples: no example has %s()" % item.name)
    return [".SH EXAMPLE"] + filled(example[0]) + block(example[1])


def inherited(doc, told):
    """The descriptions of the calls that this one is like, each once."""
    out = []
    for name, model in doc.inherited:
        if name in told:
            continue
        told.add(name)
        paras = [line for para in model.text for line in rendered(para)]
        out += [".PP"] + filled("What the page of %s() says holds here, too:" % name)
        out += [".RS 4"] + paras + [".RE"] + inherited(model, told)
    return out


def call_page(item, header, library, version, source, examples):
    doc = item.doc
    if not doc.text:
        raise SystemExit("%s: %s has no description" % (source, item.name))
    lines = header_of(item.name, 3, version, source) + name_line(item.name, doc.first_sentence())
    lines += [".SH LIBRARY", "Link with what",
              "\\fBpkg\\-config \\-\\-libs %s\\fP" % escape(library),
              "prints; it is in", "\\fI%s\\fP." % escape("lib" + library + ".so")]
    lines += [".SH SYNOPSIS", ".nf", "\\fB#include <%s>\\fP" % escape(header.replace("_", "/", 1)),
              ".PP"]
    lines += ["\\fB" + line + "\\fP" for line in verbatim(prototype(item))] + [".fi"]
    lines += [".SH DESCRIPTION"]
    for i, para in enumerate(doc.text):
        lines += rendered(para)[1 if i == 0 and not para[0].lstrip().startswith("|") else 0:]
    lines += terms(doc.params) + inherited(doc, {item.name})
    out, bad = returned(item)
    lines += out
    if bad:
        lines += [".SH ERRORS"] + terms(bad)
        if any("(a)" in text for _, text in bad):
            lines += [".PP"] + filled("(a): not returned by the call, but what the overlapped "
                                      "operation completes with.")
    if doc.notes:
        lines += [".SH NOTES"]
        for para in doc.notes:
            lines += rendered(para)
    if doc.safety:
        lines += [".SH THREADS AND BLOCKING"] + filled(doc.safety)
    lines += example_of(item, header, examples)
    return lines + see_also(item, header)


def header_page(name, overview, items, version, source):
    if overview is None:
        raise SystemExit("%s: there is no @file comment" % source)
    brief = overview.first_sentence()
    lines = header_of(name, 3, version, source) + name_line(name, brief)
    lines += [".SH SYNOPSIS", "\\fB#include <%s>\\fP" % escape(name.replace("_", "/", 1))]
    lines += [".SH DESCRIPTION"]
    for i, para in enumerate(overview.text):
        lines += rendered(para)[1 if i == 0 else 0:]
    types = [item for item in items if item.kind in ("type", "macro", "data")]
    if types:
        lines += [".SH TYPES AND CONSTANTS"]
    for item in types:
        lines += [".SS " + escape(item.name)]
        for i, para in enumerate(item.doc.text):
            lines += rendered(para)[1 if i == 0 and not para[0].lstrip().startswith("|") else 0:]
        lines += terms(item.doc.params)
        lines += block(item.code.split("\n"))
    calls = [item for item in items if item.kind == "call"]
    if calls:
        lines += [".SH CALLS"]
        lines += [line for item in calls for line in
                  [".TP", "\\fB%s\\fP(3)" % escape(item.name)] + filled(item.doc.first_sentence())]
    lines += [".SH RETURN VALUE", "Each call says what it returns."]
    return lines


def libraries_of(maps):
    """Header -> library, from the remarks "Headers: a.h b.h" in the maps."""
    libraries = {}
    for path in maps:
        with open(path, encoding="utf-8") as source:
            names = re.search(r"Headers:([a-z_. ]+)\*/", source.read())
        if names is None:
            raise SystemExit('%s does not say "Headers: ..."' % path)
        for header in names.group(1).split():
            libraries["ndx_" + header] = os.path.basename(path)[:-len(".map")]
    return libraries


def make_headers(version, out, paths):
    libraries = libraries_of(path for path in paths if path.endswith(".map"))
    headers = {path: parse_header(path) for path in paths if not path.endswith(".map")}
    meanings = {}
    for path in headers:
        if os.path.basename(path) == "status.h":
            meanings = dict(statuses(path))
    models = Models([item for _, items in headers.values() for item in items], meanings)
    examples = Examples(os.path.join(os.path.dirname(os.path.abspath(__file__)), "examples"))
    for path, (overview, items) in headers.items():
        header = "ndx_" + os.path.basename(path)
        # Before the comments of the calls have more than one sentence of their own
        write(out, header + ".3", header_page(header, overview, items, version, path))
        for item in items:
            if item.kind == "call":
                models.resolve(item)
                write(out, item.name + ".3",
                      call_page(item, header, libraries.get(header, "ndx"), version, path, examples))
            elif item.kind == "type":
                write(out, item.name + ".3", [".so man3/%s.3" % header])


def statuses(path):
    """The members of enum ndx_status, each with its remark."""
    with open(path, encoding="utf-8") as source:
        body = re.search(r"enum ndx_status \{(.*?)\n\};", source.read(), re.S).group(1)
    before = ""
    for remark, name, behind in re.findall(
            r"/\*\*([^<].*?)\*/|(NDX_\w+) = -?\d+,(?:[ \t]*/\*\*<(.*?)\*/)?", body, re.S):
        if name:
            text = " ".join(re.sub(r"\n\s*\*", " ", behind or before).split())
            if not text:
                raise SystemExit("%s: %s has no remark" % (path, name))
            yield name, text.rstrip(".")
        before = "" if name else remark


# ---- tools ----

def make_tool(version, out, program):
    """Usage, a paragraph or more, lists of options, what else there is."""
    name = os.path.basename(program)
    text = subprocess.run([program, "--help"], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout
    paras = [p.split("\n") for p in text.strip("\n").split("\n\n")]
    usage = paras.pop(0)
    about = " ".join(line.strip() for line in paras[0] if not line.startswith("  "))
    brief = re.match(r"(.*?[^.])(?:\.(?=\s|$)|$)", about).group(1)
    lines = header_of(name, 1, version, program) + name_line(name, brief)
    lines += [".SH SYNOPSIS", ".nf"]
    lines += ["\\fB" + line + "\\fP" for line in
              verbatim(re.sub(r"^[Uu]sage: ", "", line).strip() for line in usage)]
    lines += [".fi", ".SH DESCRIPTION"]
    sections(lines, paras, lambda para: None)
    lines += [".SH SEE ALSO", "\\fBndx_ndx.h\\fP(3)"]
    write(out, name + ".1", lines)


def sections(lines, paras, special):
    """Paragraphs; one that begins with "Title:" begins a section. @p special makes the lines of a
    paragraph that is none, or returns None."""
    for i, para in enumerate(paras):
        made = special(para)
        if made is not None:
            lines += made
            continue
        if para[0].endswith(":") and not para[0].startswith(" "):
            lines += [".SH " + escape(para.pop(0).rstrip(":").upper())]
        elif para[0].startswith("Exit status:"):
            lines += [".SH EXIT STATUS"]
            para[0] = para[0].replace("Exit status:", "", 1).strip()
        elif i > 0:
            lines += [".PP"]
        if para:
            lines += tool_examples(para) if lines[-1] == ".SH EXAMPLES" else tool_paragraph(para)


# ---- the overview ----

def make_overview(version, out, text, headers):
    with open(text, encoding="ascii") as source:
        paras = [p.split("\n") for p in source.read().strip("\n").split("\n\n")]
    title, brief = paras.pop(0)[0].split(" - ", 1)
    names = sorted("ndx_" + os.path.basename(path) for path in headers)
    meanings = next(dict(statuses(p)) for p in headers if os.path.basename(p) == "status.h")

    def special(para):
        if para == ["@synopsis"]:
            return [".SH SYNOPSIS", ".nf", "\\fB#include <ndx/ndx.h>\\fP", ".PP",
                    "\\fBcc ... $(pkg\\-config \\-\\-cflags \\-\\-libs ndx)\\fP", ".fi",
                    ".SH DESCRIPTION"]
        if para == ["@statuses"]:
            return terms(meanings.items())
        if para == ["@headers"]:
            pages = ["ndx-info(1)", "ndx-perf(1)", "ndx-conformance(1)"] + \
                [name + "(3)" for name in names]
            return [".SH SEE ALSO"] + \
                ["\\fB%s\\fP%s" % (escape(page[:-3]), page[-3:]) + ("," if page != pages[-1] else "")
                 for page in pages]
        return None

    lines = header_of(title, 7, version, text) + name_line(title, brief)
    sections(lines, paras, special)
    write(out, os.path.basename(text)[:-len(".txt")], lines)


def tool_examples(para):
    """A remark, and below it the command, indented."""
    out = []
    for i, line in enumerate(para):
        if line.startswith("  "):
            out += block([line[2:]])
        else:
            out += ([".PP"] if i > 0 else []) + filled(line + ":")
    return out


def tool_paragraph(para):
    out = []
    plain = []
    for line in para + [None]:
        option = re.match(r"  (\S.*?)(?:  +(.*))?$", line) if line is not None else None
        if plain and (option or line is None):
            out += filled(" ".join(plain))
            plain = []
        if option:
            out += [".TP", "\\fB" + escape(option.group(1)) + "\\fP"]
            plain = [option.group(2) or ""]
        elif line is not None:
            plain.append(line.strip())
    return out


def main():
    if len(sys.argv) < 5 or sys.argv[1] not in ("headers", "tool", "overview"):
        raise SystemExit(__doc__)
    os.makedirs(sys.argv[3], exist_ok=True)
    if sys.argv[1] == "headers":
        make_headers(sys.argv[2], sys.argv[3], sys.argv[4:])
    elif sys.argv[1] == "overview":
        make_overview(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
    else:
        make_tool(sys.argv[2], sys.argv[3], sys.argv[4])


main()
