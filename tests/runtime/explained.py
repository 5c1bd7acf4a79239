"""Differences between runtimes that are right, each with its reason.

The specification decides; where it is silent, what programs in containers rely on.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """Explains a difference: in which cases, from which runtimes, in which fields, and why."""

    case: str
    peer: str
    field: str
    why: str
    ours: str = ".*"
    theirs: str = ".*"


RULES = []


def find(case, peer, field, mine, other):
    """The rule that explains a difference, if one does; all of a rule's patterns match the whole text."""
    for rule in RULES:
        texts = ((rule.case, case), (rule.peer, peer), (rule.field, field), (rule.ours, str(mine)), (rule.theirs, str(other)))
        if all(re.fullmatch(pattern, text, re.DOTALL) for pattern, text in texts):
            return rule
    return None
