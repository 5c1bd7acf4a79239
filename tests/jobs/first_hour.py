"""The commands and the screen of the README's section "From nothing to a compared sweep"."""

import re

from harness import REPOSITORY

HEADING = "## From nothing to a compared sweep"


def blocks():
    """The commands of the README's section, and the screen that it shows for the last but one."""
    section = (REPOSITORY / "README.md").read_text().split(HEADING, 1)[1].split("\n## ", 1)[0]
    commands, screen = re.findall(r"```(?:sh|text)\n(.*?)```", section, re.DOTALL)
    return [line.split("  #", 1)[0].strip() for line in commands.splitlines() if line.strip()], screen


def same(text):
    """Without what differs from run to run: durations and widths."""
    text = re.sub(r"\d+(\.\d+)? ?(ms|s|min)\b", "TIME", text)
    return [re.sub(r" +", " ", line).strip() for line in text.strip().splitlines()]
