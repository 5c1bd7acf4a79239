"""The unprivileged users that rootless containers are tested as."""

import fcntl
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class User:
    """A user of this host, with its ranges in /etc/subuid and /etc/subgid, if any."""

    name: str
    uid: int
    gid: int
    subuids: tuple | None
    subgids: tuple | None

    def prefix(self):
        """The prefix of a command that runs it as this user."""
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]

    def mappings(self):
        """The id mappings a rootless container gets: the user as root, then the range."""
        def of(own, extra):
            first = [{"containerID": 0, "hostID": own, "size": 1}]
            return first + ([{"containerID": 1, "hostID": extra[0], "size": extra[1]}] if extra else [])
        return of(self.uid, self.subuids), of(self.gid, self.subgids)


def named(name):
    """The user of a test: `root`, which is None, `range` or `single`."""
    return {"root": lambda: None, "range": with_range, "single": without_range}[name]()


def with_range():
    """A user with a range of subordinate ids; created if it is missing."""
    return find_or_create("jobc-test-a", ranged=True)


def without_range():
    """A user without subordinate ids, who can map only its own id; created if it is missing."""
    return find_or_create("jobc-test-b", ranged=False)


def find_or_create(name, ranged):
    # One test at a time: two would create the same user.
    with open(__file__, encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return create(name, ranged)


def create(name, ranged):
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True, capture_output=True)
        entry = pwd.getpwnam(name)
    have = subordinate_range("subuid", name), subordinate_range("subgid", name)
    if ranged and None in have:
        start = 2_000_000_000
        span = f"{start}-{start + 65535}"
        subprocess.run(["usermod", "--add-subuids", span, "--add-subgids", span, name], check=True)
    if not ranged:
        for kind, span in zip(("uids", "gids"), have):
            if span:
                subprocess.run(["usermod", f"--del-sub{kind}", f"{span[0]}-{span[0] + span[1] - 1}", name], check=True)
    return User(name, entry.pw_uid, entry.pw_gid, subordinate_range("subuid", name), subordinate_range("subgid", name))


def subordinate_range(kind, name):
    """The first range of a user in /etc/subuid or /etc/subgid, as (start, count)."""
    path = Path("/etc", kind)
    for line in path.read_text().splitlines() if path.exists() else []:
        fields = line.split(":")
        if fields[0] == name and len(fields) == 3:
            return int(fields[1]), int(fields[2])
    return None
