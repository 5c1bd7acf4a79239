"""A second process that exchanges two paths all the time, while containers are started that use them."""

import select
import subprocess
from pathlib import Path


class Racer:
    """Starts go on until there were as many as asked, and as many exchanges; `problems` says where those never came about."""

    def __init__(self, harness, what, one, two):
        self.harness, self.what = harness, what
        self.wanted, self.least = harness.options.exchanges, harness.options.races
        command = ["python3", Path(__file__).with_name("swap.py"), one, two, str(self.wanted)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.problems = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        said, _ = self.process.communicate("")
        times = int(said.split()[-1]) if said.split() else 0
        self.harness.note(f"{self.what} was exchanged", times)
        if times < self.wanted:
            self.problems.append(f"{self.what} was exchanged {times} times only, not {self.wanted}: nothing was raced for")

    def starts(self):
        """The numbers of the starts; twenty times as many as asked for is the end in any case."""
        for number in range(20 * self.least):
            if number >= self.least and select.select([self.process.stdout], [], [], 0)[0]:
                return
            yield number
