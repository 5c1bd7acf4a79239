"""A logged-in user with a systemd user instance, in a virtual machine whose first process is systemd."""

import os
import subprocess
from pathlib import Path

# The default dependencies start everything that a machine boots with, and clear /tmp.
NO_DEFAULT_DEPENDENCIES = ["--property=DefaultDependencies=no"]


class Login:
    """The session of the user `uid`, `gid`. `delegated` is what root delegates to their systemd (`Delegate=`), `directory` the
    cgroup of the slice that it is in."""

    def __init__(self, uid, gid, delegated="yes", unit="nobody", directory="system.slice"):
        self.uid, self.gid, self.delegated, self.unit = uid, gid, delegated, unit
        self.place = Path(f"/run/user/{uid}")
        self.slice = Path("/sys/fs/cgroup", directory)
        self.group = self.slice / f"{unit}.service"

    def start(self):
        """Starts the user's systemd."""
        self.place.mkdir(parents=True, mode=0o700)
        os.chown(self.place, self.uid, self.gid)
        target = Path("/run/systemd/user/nothing.target")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("[Unit]\nDefaultDependencies=no\n")
        # Its processes are moved by the system instance, which it asks over the bus.
        subprocess.run(["systemctl", "start", "dbus.service"], check=True)
        subprocess.run(["systemd-run", "--quiet", f"--unit={self.unit}", f"--slice={self.slice.name}", *NO_DEFAULT_DEPENDENCIES, *self.identity(), f"--property=Delegate={self.delegated}",
                        "--property=Type=notify", "/lib/systemd/systemd", "--user", "--unit=nothing.target"], check=True, timeout=60)

    def identity(self):
        return [f"--uid={self.uid}", f"--gid={self.gid}", f"--setenv=XDG_RUNTIME_DIR={self.place}"]
