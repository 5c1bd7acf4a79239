"""What the registry tests share: a `jobc` with its own home directory, and a store that is verified afterwards."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))
from runtime import binary  # noqa: E402


def assert_result(result, code=0, *words):
    """A command has ended with this exit code and messages."""
    assert result.returncode == code, f"exit code {result.returncode}, not {code}: {result.stdout}{result.stderr}"
    missing = [word for word in words if word not in result.stderr]
    assert not missing, f"{missing} is not in the output: {result.stderr}"


class Home:
    """A home directory with settings, credentials and an image store."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.directory.mkdir(exist_ok=True)
        self.store = self.directory / "images"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.directory), "JOBC_COLOR": "never",
                            "JOBC_IMAGE_ROOT": str(self.store)}

    def registries(self, settings):
        """Writes registries.yaml: text, or a value as JSON, which is YAML."""
        path = self.directory / ".config/jobc/registries.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(settings if isinstance(settings, str) else json.dumps({"registries": settings}))
        return path

    def login(self, **auths):
        """Writes Docker's credentials file, with one entry per registry."""
        path = self.directory / ".docker/config.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"auths": {name.replace("__", ":"): entry for name, entry in auths.items()}}))

    def run(self, *words, seconds=60, **environment):
        return subprocess.run([binary(), *map(str, words)], env=self.environment | environment, cwd=self.directory,
                              capture_output=True, text=True, timeout=seconds, check=False)

    def start(self, *words):
        return subprocess.Popen([binary(), *map(str, words)], env=self.environment, cwd=self.directory,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def names(self):
        index = json.loads((self.store / "index.json").read_text()) if (self.store / "index.json").exists() else {}
        return [entry["annotations"]["org.opencontainers.image.ref.name"] for entry in index.get("manifests", [])]

    def blobs(self):
        return {f"sha256:{path.name}" for path in (self.store / "blobs/sha256").glob("*")}

    def store_problems(self):
        """The problems of the store, as lines: found here and by `jobc image verify`."""
        for path in (self.store / "blobs/sha256").glob("*"):
            if hashlib.sha256(path.read_bytes()).hexdigest() != path.name:
                yield f"the content of the blob {path.name} does not match its digest"
        if self.store.exists():
            verified = self.run("image", "verify")
            if verified.returncode != 0:
                yield f"`jobc image verify` says: {verified.stdout}{verified.stderr}"
