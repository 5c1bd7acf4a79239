#!/usr/bin/env python3
"""Measures a Dockerfile of ten steps with `jobc image build` and with buildah, without cache and fully cached.

Run it as root after `cargo build --release`; `JOBC` names another program. It prints medians of `--times` runs.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "runtime"), str(Path(__file__).resolve().parents[2])]
from runtime import binary  # noqa: E402

STEPS = """FROM {base}
RUN mkdir -p /srv/app && echo start > /srv/app/log
WORKDIR /srv/app
COPY one.txt /srv/app/
RUN cat one.txt >> log
COPY many /srv/app/many
RUN for i in $(seq 100); do echo $i > file-$i; done
ENV MODE=fast
RUN rm -r many && echo $MODE >> log
COPY large.bin /srv/app/
RUN sha256sum large.bin > sum
CMD ["cat", "/srv/app/log"]
"""


def timed(words, **more):
    began = time.monotonic()
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise SystemExit(f"{words[0]}: {done.stderr[-2000:]}")
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory(prefix="jobc-bench-") as directory:
        directory = Path(directory)
        root, context = directory / "base", directory / "context"
        (root / "bin").mkdir(parents=True)
        (context / "many").mkdir(parents=True)
        shutil.copy2("/bin/busybox", root / "bin/busybox")
        for name in subprocess.run(["/bin/busybox", "--list"], capture_output=True, text=True).stdout.split():
            if name != "busybox":
                (root / "bin" / name).symlink_to("busybox")
        (context / "one.txt").write_text("one\n")
        for number in range(500):
            (context / "many" / str(number)).write_text(f"{number}\n" * 20)
        (context / "large.bin").write_bytes(os.urandom(8 << 20))
        base = directory / "base.tar"
        subprocess.run(["tar", "--owner=0", "--group=0", "-C", root, "-cf", base, "."], check=True)
        for who in ("base", "localhost/base"):
            (directory / f"{who.replace('/', '-')}.Dockerfile").write_text(STEPS.format(base=who))
        storage = ["--root", directory / "b", "--runroot", directory / "br"]
        subprocess.run(["buildah", *map(str, storage), "from", "--name", "w", "scratch"], check=True, capture_output=True)
        timed(["buildah", *storage, "add", "-q", "w", base, "/"])
        timed(["buildah", *storage, "commit", "-q", "w", "localhost/base"])
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "JOBC_IMAGE_ROOT": str(directory / "images")}
        timed([binary(), "image", "import", base, "--tag", "base", "--quiet"], env=environment)

        def buildah(*more):
            return timed(["buildah", *storage, "bud", "-q", "--isolation", "chroot", "--layers", *more,
                          "-f", directory / "localhost-base.Dockerfile", "-t", "x", context])

        def jobc(*more):
            return timed([binary(), "image", "build", "--builder", "embedded", "-q", *more,
                          "-f", directory / "base.Dockerfile", "-t", "x", context], env=environment)

        results = {}
        # Alternating, so that other load on the host affects both.
        for _ in range(times):
            results.setdefault("cold", []).append((buildah("--no-cache"), jobc("--no-cache")))
        time.sleep(2.5)
        buildah(), jobc()
        for _ in range(times):
            results.setdefault("known", []).append((buildah(), jobc()))
        for kind, pairs in results.items():
            theirs, ours = (statistics.median(column) for column in zip(*pairs))
            print(f"{kind:6} buildah {theirs * 1000:7.0f} ms   jobc {ours * 1000:7.0f} ms   {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
