"""The unprivileged users that rootless containers are tested as."""

import fcntl
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class User:
    """A user of this machine, with the ranges that /etc/subuid and /etc/subgid give it, if any."""

    name: str
    uid: int
    gid: int
    subuids: tuple | None
    subgids: tuple | None

    def prefix(self):
        """The words before a command that make it this user's."""
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]

    def mappings(self):
        """The id mappings a rootless container gets: the user as root, then the range."""
        def of(own, extra):
            first = [{"containerID": 0, "hostID": own, "size": 1}]
            return first + ([{"containerID": 1, "hostID": extra[0], "size": extra[1]}] if extra else [])
        return of(self.uid, self.subuids), of(self.gid, self.subgids)


def with_range():
    """A user that newuidmap gives a range; made if it is missing."""
    return found("jobc-test-a", ranged=True)


def without_range():
    """A user that only a mapping of its own id is open to; made if it is missing."""
    return found("jobc-test-b", ranged=False)


def found(name, ranged):
    # One test at a time: two would create the same user.
    with open(__file__, encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return made(name, ranged)


def made(name, ranged):
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True, capture_output=True)
        entry = pwd.getpwnam(name)
    have = of_file("subuid", name), of_file("subgid", name)
    if ranged and None in have:
        start = 2_000_000_000
        span = f"{start}-{start + 65535}"
        subprocess.run(["usermod", "--add-subuids", span, "--add-subgids", span, name], check=True)
    if not ranged:
        for kind, span in zip(("uids", "gids"), have):
            if span:
                subprocess.run(["usermod", f"--del-sub{kind}", f"{span[0]}-{span[0] + span[1] - 1}", name], check=True)
    return User(name, entry.pw_uid, entry.pw_gid, of_file("subuid", name), of_file("subgid", name))


def of_file(kind, name):
    """The first range of a user in /etc/subuid or /etc/subgid, as (start, count)."""
    path = Path("/etc", kind)
    for line in path.read_text().splitlines() if path.exists() else []:
        fields = line.split(":")
        if fields[0] == name and len(fields) == 3:
            return int(fields[1]), int(fields[2])
    return None
