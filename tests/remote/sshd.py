"""OpenSSH's own sshd on loopback with keys of its own, and an `ssh` that knows it and nothing else."""

import os
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

SECONDS = 20
BANNER = "*** Authorized use only. ***\n"
# Profiles print on both streams, and go to another directory.
NOISE = "echo 'Welcome to box!'; echo 'quota: 3% used' >&2; cd /\n"
SERVER = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {directory}/host_key
PidFile none
AuthorizedKeysFile {directory}/authorized_keys
Banner {directory}/banner
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
AllowAgentForwarding yes
MaxSessions 100
MaxStartups 100
LogLevel VERBOSE
SetEnv {variables}
"""
CLIENT = """\
Host {name}
    HostName 127.0.0.1
    Port {port}
    User {user}
    IdentityFile {directory}/user_key
    IdentitiesOnly yes
    UserKnownHostsFile {directory}/known_hosts
    StrictHostKeyChecking yes
{more}
Host stranger
    HostName 127.0.0.1
    Port {port}
    UserKnownHostsFile /dev/null
    StrictHostKeyChecking yes
Host *
    UserKnownHostsFile {directory}/known_hosts
    IdentityFile {directory}/user_key
    IdentitiesOnly yes
"""


def missing():
    """What is not installed."""
    return next((tool for tool in ("ssh", "ssh-keygen", "sshd") if not shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")), None)


class Sshd:
    """A server, and a directory `bin` with an `ssh` that uses its configuration.

    `login` is what runs a program as the user of the server; `home` is the home directory that commands see there, and `variables` are more
    of what they see.
    """

    def __init__(self, directory, home, user="root", login=(), name="box", more="", variables=None):
        self.directory, self.home, self.name, self.login = Path(directory), Path(home), name, list(login)
        self.user, self.more, self.variables, self.process = user, more, variables or {}, None
        self.directory.mkdir(parents=True, exist_ok=True)
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.directory / key], check=True, timeout=SECONDS)
        shutil.copy(self.directory / "user_key.pub", self.directory / "authorized_keys")
        (self.directory / "banner").write_text(BANNER)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        key = (self.directory / "host_key.pub").read_text()
        self.known_hosts = f"[127.0.0.1]:{self.port} {key}"
        (self.directory / "known_hosts").write_text(self.known_hosts)
        self.write()
        binary = self.directory / "bin/ssh"
        binary.parent.mkdir()
        ssh = shutil.which("ssh")
        binary.write_text(f"#!/bin/sh\necho \"$@\" >>{shlex.quote(str(self.directory / 'calls'))}\n"
                          f"exec {ssh} -F {shlex.quote(str(self.directory / 'client'))} \"$@\"\n")
        binary.chmod(0o755)

    def write(self):
        """Writes the configurations."""
        values = {"directory": self.directory, "port": self.port, "user": self.user, "name": self.name, "more": self.more}
        (self.directory / "client").write_text(CLIENT.format(**values))
        self.home.mkdir(parents=True, exist_ok=True)
        # bash reads ~/.bashrc for commands of sshd if it was built so; BASH_ENV has every bash read it.
        for profile in (".bashrc", ".profile"):
            (self.home / profile).write_text(NOISE)
        variables = {"HOME": self.home, "BASH_ENV": f"{self.home}/.bashrc", "XDG_RUNTIME_DIR": "", "XDG_CACHE_HOME": "", "XDG_DATA_HOME": "",
                     "XDG_STATE_HOME": "", **self.variables}
        variables = " ".join(f'"{name}={value}"' for name, value in variables.items())
        (self.directory / "server").write_text(SERVER.format(**values, variables=variables))

    def start(self):
        sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        if os.geteuid() == 0 and not self.login:
            Path("/run/sshd").mkdir(exist_ok=True)
        # The keys of a server must be readable by its user alone.
        log = open(self.directory / "log", "ab")  # noqa: SIM115
        self.process = subprocess.Popen([*self.login, sshd, "-D", "-e", "-f", str(self.directory / "server")],
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.02)
        raise AssertionError(f"sshd does not listen: {self.log()}")

    def log(self):
        path = self.directory / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def calls(self):
        path = self.directory / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def connections(self):
        """How many times somebody has logged in."""
        return self.log().count("Accepted publickey")

    def environment(self):
        """The variables of a user whose ssh this is."""
        return {"PATH": f"{self.directory / 'bin'}:{os.environ['PATH']}"}

    def close(self, sockets):
        """Ends the shared connections whose sockets are in a directory, and the server."""
        for path in Path(sockets).glob("*") if Path(sockets).is_dir() else []:
            if stat.S_ISSOCK(path.stat().st_mode):
                subprocess.run(["ssh", "-F", str(self.directory / "client"), "-S", str(path), "-O", "exit", self.name],
                               capture_output=True, check=False, timeout=SECONDS)
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(SECONDS)
