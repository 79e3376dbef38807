# SPDX-License-Identifier: BSD-2-Clause
"""What the comment of a call says by naming another call, put onto the page itself.

"As ndx_x()." at the end of a description means that the description, the parameters and the statuses
of ndx_x() hold, too; "@return otherwise as ndx_x() and ndx_y()" means their failures. Somebody who
reads the page then needs no second one.
"""
import re

NULL = "an argument is NULL that may not be NULL"
LIST = r"ndx_\w+\(\)(?:(?:, and |, | and )ndx_\w+\(\))*"
PHRASE = re.compile(r"\b(?:Otherwise |otherwise )?[Aa]s (%s)(?=[.,;:]|$| posts\b| do\b)" % LIST)
SENTENCE = re.compile(r"(?:^|(?<=\. ))(?:Otherwise as|As|Returns as) %s\.?(?: |$)" % LIST)
# The sentences above, and what the page keeps of "@return otherwise as ndx_x(); TEXT".
LEADING = re.compile(r"^(?:Otherwise |otherwise )?as %s[.;,]?\s*" % LIST)


def named(text):
    """The calls that a text says it is like."""
    return [name for phrase in PHRASE.findall(text) for name in re.findall(r"ndx_\w+", phrase)]


def flat(lines):
    return " ".join(" ".join(lines).split())


class Models:
    """All calls by name; resolve() once for each before a page is made."""

    def __init__(self, items, meanings):
        self.calls = {item.name: item for item in items if item.kind == "call"}
        self.meanings = meanings
        self.done = set()

    def resolve(self, item):
        if item.name in self.done:
            return
        self.done.add(item.name)
        doc = item.doc
        described = self.others(item, flat(line for para in doc.text for line in para))
        failing = [m for m in self.others(item, doc.returns) if m not in described]
        safe = self.others(item, doc.safety)
        for model in described + failing + safe:
            self.resolve(model)
        for entry in doc.retvals:
            self.fill(entry)
        doc.text = [para for para in map(self.without_names, doc.text) if para]
        doc.returns = LEADING.sub("", doc.returns)
        for model in described:
            self.describe(item, model)
        for model in failing:
            self.inherit(item, model, True)
        for model in safe:
            # "as ndx_x()" of another thread rule or time
            if model.doc.safety and model not in described:
                doc.safety += " For %s(): %s" % (model.name, model.doc.safety)
        self.arguments(item)

    def others(self, item, text):
        out = []
        for name in named(text):
            model = self.calls.get(name)
            if model is None:
                raise SystemExit("%s: there is no call %s()" % (item.name, name))
            if model is not item and model not in out:
                out.append(model)
        return out

    def fill(self, entry):
        """A status whose cause stands at another call, or whose meaning says enough."""
        names, text = entry
        model = re.fullmatch(r"as (ndx_\w+)\(\)", text)
        if model:
            self.resolve(self.calls[model.group(1)])
            text = next((t for n, t in self.calls[model.group(1)].doc.retvals if n == names), "")
        entry[1] = text or self.meanings.get(names, "")

    @staticmethod
    def without_names(para):
        if para[0].lstrip().startswith("|") or any(re.match(r"\s+(-|\d+\.) ", l) for l in para):
            return para
        text = SENTENCE.sub("", flat(para)).strip()
        return [text] if text else []

    def describe(self, item, model):
        doc = item.doc
        own = {name for names, _ in doc.params for name in names.split(", ")}
        prototype = item.code.split("(", 1)[1]
        for names, text in model.doc.params:
            missing = [n for n in names.split(", ")
                       if n not in own and re.search(r"\b%s\b" % n, prototype)]
            if missing:
                doc.params.append([", ".join(missing), text])
        doc.inherited.append((model.name, model.doc))
        if model.doc.returns and not doc.returns:
            doc.returns = model.doc.returns
        if not doc.safety:
            doc.safety = model.doc.safety
        self.inherit(item, model, False)

    def inherit(self, item, model, others):
        """The failures of a model; @p others: beside those of the call, with their own causes."""
        doc = item.doc
        overlapped = "struct ndx_overlapped" in item.code
        fine = any(not names.startswith("NDX_E_") for names, _ in doc.retvals)
        entries = {name: entry for entry in doc.retvals for name in entry[0].split(", ")}
        for names, text in model.doc.retvals:
            if text == NULL or not names.startswith("NDX_E_") and (others or fine):
                continue
            if not overlapped:
                text = re.sub(r"^\(a\)\s*", "", text)
            missing = [name for name in names.split(", ") if name not in entries]
            if missing:
                doc.retvals.append([", ".join(missing), text])
                entries.update((name, doc.retvals[-1]) for name in missing)
            elif others and text and text not in entries[names.split(", ")[0]][1]:
                entries[names.split(", ")[0]][1] += "; or: " + text

    def arguments(self, item):
        """What <ndx/status.h> says of all calls that return a status (NULL)."""
        head, rest = item.code.split("(", 1)
        if not re.match(r"(static inline )?enum ndx_status\s", head) or item.data_path:
            return
        if "*" in rest and not any("NDX_E_INVALID_PARAMETER" in n for n, _ in item.doc.retvals):
            item.doc.retvals.append(["NDX_E_INVALID_PARAMETER", NULL])
