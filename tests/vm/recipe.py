#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The commands of docs/ci, for recipe.sh.

usage: recipe.py DOCS OUT

Checks that both files are what the services take, that both and docs/rdma-in-ci.md have the same
commands, and writes each step of each job to OUT/JOB.N.sh. Exit status 77: PyYAML is missing.
"""
import os
import re
import sys

try:
    import yaml
except ImportError:
    print("skip: PyYAML is missing (install python3-yaml)")
    sys.exit(77)

JOBS = ("guest", "tcp")


def need(fine, what):
    if not fine:
        raise SystemExit(what)


def lines(text):
    return [line for line in text.splitlines() if line.strip()]


def github(path):
    """{job: list of steps, each a list of commands}"""
    with open(path, encoding="ascii") as source:
        flow = yaml.safe_load(source)
    # YAML 1.1 reads the key "on" as a truth value
    need(set(flow) == {"name", True, "env", "jobs"}, "github: not the keys of a workflow")
    need(set(flow["jobs"]) == set(JOBS), "github: the jobs are not " + str(JOBS))
    jobs = {}
    for name, job in flow["jobs"].items():
        need(set(job) == {"runs-on", "container", "timeout-minutes", "steps"},
             "github: %s has other keys than a job" % name)
        jobs[name] = []
        for step in job["steps"]:
            need(("uses" in step) != ("run" in step), "github: a step either uses or runs")
            if "uses" in step:
                need(re.fullmatch(r"actions/\w+@v\d+", step["uses"]), "github: " + step["uses"])
            else:
                need(set(step) == {"name", "run"}, "github: a step with other keys: " + str(step))
                jobs[name].append(lines(step["run"]))
    return jobs


def gitlab(path):
    """{job: list of commands}"""
    with open(path, encoding="ascii") as source:
        flow = yaml.safe_load(source)
    need(set(flow) == {"default", *JOBS}, "gitlab: the jobs are not " + str(JOBS))
    need(set(flow["default"]) == {"image", "timeout"}, "gitlab: other defaults")
    for name in JOBS:
        need(set(flow[name]) <= {"cache", "script"}, "gitlab: %s has other keys" % name)
        for command in flow[name]["script"]:
            need(isinstance(command, str), "gitlab: not a command but %s" % command)
    return {name: flow[name]["script"] for name in JOBS}


def page(path):
    """{job: list of commands}, from the blocks of the page, in the order of the jobs"""
    with open(path, encoding="ascii") as source:
        blocks = re.findall(r"^```sh\n(.*?)^```$", source.read(), re.M | re.S)
    need(len(blocks) == len(JOBS), "the page has not one block for each job")
    return {name: lines(block) for name, block in zip(JOBS, blocks)}


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    docs, out = sys.argv[1:]
    steps = github(os.path.join(docs, "ci", "github-actions.yml"))
    commands = {name: [line for step in steps[name] for line in step] for name in JOBS}
    for what, others in (("gitlab-ci.yml", gitlab(os.path.join(docs, "ci", "gitlab-ci.yml"))),
                         ("the page", page(os.path.join(docs, "rdma-in-ci.md")))):
        for name in JOBS:
            for mine, other in zip(commands[name] + [""], others[name] + [""]):
                need(mine == other, "%s: %s has other commands than github-actions.yml:\n%s\n%s" %
                     (name, what, other, mine))
    for name in JOBS:
        need(len(commands[name]) <= 10, name + ": a recipe has ten lines at most")
        for number, step in enumerate(steps[name]):
            with open(os.path.join(out, "%s.%d.sh" % (name, number)), "w",
                      encoding="ascii") as script:
                script.write("\n".join(step) + "\n")


main()
