"""A second process that keeps exchanging two paths while containers that use them are started."""

import select
import subprocess
from pathlib import Path


class Racer:
    """Containers are started until there were enough starts; too few exchanges fail the test."""

    def __init__(self, fixture, name, one, two):
        self.fixture, self.name, self.min_exchanges, self.min_starts = fixture, name, fixture.exchanges, fixture.races
        command = ["python3", Path(__file__).with_name("swap.py"), one, two, str(self.min_exchanges)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        output, _ = self.process.communicate("")
        times = int(output.split()[-1]) if output.split() else 0
        self.fixture.note(f"{self.name} was exchanged {times} times")
        assert error or times >= self.min_exchanges, f"{self.name} was exchanged {times} times, not {self.min_exchanges}: the race was not tested"

    def starts(self):
        """The numbers of the starts, at most twenty times as many as wanted."""
        for number in range(20 * self.min_starts):
            if number >= self.min_starts and select.select([self.process.stdout], [], [], 0)[0]:
                return
            yield number
