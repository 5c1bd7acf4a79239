"""A user with a systemd of their own, as one who has logged in has it, in a machine whose first process is systemd."""

import os
import subprocess
from pathlib import Path

# Otherwise all that a machine begins with is started too, and /tmp is cleared.
ALONE = ["--property=DefaultDependencies=no"]


class Login:
    """What begins with a log-in. Whose it is has `uid` and `gid`; `delegated` is what root gives their systemd
    (`Delegate=`), `directory` the group of the slice that it is in."""

    def __init__(self, uid, gid, delegated="yes", unit="nobody", directory="system.slice"):
        self.uid, self.gid, self.delegated, self.unit = uid, gid, delegated, unit
        self.place = Path(f"/run/user/{uid}")
        self.slice = Path("/sys/fs/cgroup", directory)
        self.group = self.slice / f"{unit}.service"

    def begin(self):
        """Starts a systemd of theirs."""
        self.place.mkdir(parents=True, mode=0o700)
        os.chown(self.place, self.uid, self.gid)
        target = Path("/run/systemd/user/nothing.target")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("[Unit]\nDefaultDependencies=no\n")
        # Its own processes are moved for it by the machine's, which it asks over the bus.
        subprocess.run(["systemctl", "start", "dbus.service"], check=True)
        subprocess.run(["systemd-run", "--quiet", f"--unit={self.unit}", f"--slice={self.slice.name}", *ALONE, *self.identity(), f"--property=Delegate={self.delegated}",
                        "--property=Type=notify", "/lib/systemd/systemd", "--user", "--unit=nothing.target"], check=True, timeout=60)

    def identity(self):
        return [f"--uid={self.uid}", f"--gid={self.gid}", f"--setenv=XDG_RUNTIME_DIR={self.place}"]
