#!/usr/bin/env python3
"""The same Dockerfiles read by us and by buildah: both take them, with the same configuration, or both refuse them.

They stand on `scratch` and run nothing, so that only the reading differs. Where the two are known to differ, the case says who
is right and why. `--only WORD` runs the cases whose name has it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from home import Home  # noqa: E402

BOTH, NEITHER, OURS, THEIRS = "both", "neither", "only jobc", "only buildah"

# name, who takes it, Dockerfile behind `FROM scratch`, more arguments. Files of the context: f, a b, d/x, d/y.o, t.tar.
CASES = [
    ("env", BOTH, "ENV A=1 B=\"two words\" C=c\\ d\nENV D d  e\n"),
    ("env of before", BOTH, "ENV A=1\nENV A=2 B=$A\nENV C=$A\n"),
    ("env quotes", BOTH, "ENV A='$X' B=\"it's\" C=\"a\\\"b\" D=a\\$b\n"),
    ("env empty", BOTH, "ENV A= B=\"\"\n"),
    ("expansion", BOTH, "ENV A=1 E=\nENV B=${A:-d} C=${U:-d} D=${E:-d} F=${A:+s} G=${U:+s} H=x${A}y I=$A-$U\n"),
    ("nested", BOTH, "ENV A=1\nENV B=${U:-${A:-x}}\n"),
    ("arg", BOTH, "ARG A=1\nARG B=$A\nARG C\nENV X=$A-$B-$C\n"),
    ("arg given", BOTH, "ARG A=1\nENV X=$A\n", "--build-arg", "A=2"),
    ("env over arg", BOTH, "ENV A=env\nARG A=arg\nENV X=$A\n"),
    ("arg then env", BOTH, "ARG A=arg\nENV A=env$A\nENV X=$A\n"),
    ("labels", BOTH, "ENV A=1\nLABEL \"k.x\"=v l=\"$A b\" m='$A'\nLABEL n o p\n"),
    ("label over lines", BOTH, "LABEL a=\"1\" \\\n  # no\n  b=\"2\"\n"),
    ("cmd json", BOTH, "CMD [\"a\", \"b c\", \"\\u00e9\"]\n"),
    ("cmd shell", BOTH, "CMD echo \"$HOME\"  &&  b\n"),
    ("cmd not json", BOTH, "CMD ['a']\n"),
    ("entrypoint and cmd", BOTH, "CMD [\"x\"]\nENTRYPOINT [\"e\"]\nCMD [\"y\"]\n"),
    ("entrypoint shell", BOTH, "ENTRYPOINT exec e $X\n"),
    # What a shell form makes of it is not compared: this buildah takes /bin/sh all the same.
    ("shell", BOTH, "SHELL [\"/bin/bash\", \"-c\"]\nCMD [\"a\"]\n"),
    ("expose", BOTH, "ENV P=81\nEXPOSE 80 $P 82/udp\n"),
    ("volume", BOTH, "VOLUME /a /b\nVOLUME [\"/c d\"]\n"),
    ("workdir", BOTH, "ENV A=a\nWORKDIR /x\nWORKDIR $A/b\nWORKDIR ../c\n"),
    ("user", BOTH, "ENV U=me\nUSER $U:1\n"),
    ("stopsignal", BOTH, "STOPSIGNAL SIGINT\n"),
    ("healthcheck", BOTH, "HEALTHCHECK --interval=1m30s --retries=2 CMD x y\n"),
    ("maintainer", BOTH, "MAINTAINER me <me@x>\n"),
    ("case", BOTH, "env A=1\nCmd [\"a\"]\n"),
    ("comments", BOTH, "# a\n  # b\nENV A=1#c B=2\n"),
    ("crlf", BOTH, "ENV A=1\r\nENV B=2 \\\r\n  C=3\r\n"),
    ("gap", BOTH, "ENV A=1 \\\n\n  B=2\n"),
    ("stages", BOTH, "ENV A=1\nFROM scratch AS x\nENV B=1\nFROM scratch\nENV C=1\n"),
    ("stage by name", BOTH, "ENV A=1\nFROM scratch AS x\nENV B=1\nFROM x\nENV C=1\n"),
    ("target", BOTH, "ENV A=1\nFROM scratch AS x\nENV B=1\nFROM scratch\nENV C=1\n", "--target", "x"),
    ("global arg", BOTH, "ARG V\nENV X=$V\n", "--build-arg", "V=g"),
    ("copy", BOTH, "COPY f d /to/\nCOPY [\"a b\", \"/c\"]\nCOPY d/*.o d/[x] /g/\n"),
    ("copy variables", BOTH, "ARG D=d\nCOPY $D/x ${U:-/to}\n"),
    ("copy from a stage", BOTH, "COPY f /\nFROM scratch\nCOPY --from=0 /f /g\n"),
    ("copy owner", BOTH, "COPY --chown=1:2 --chmod=0600 f /\n"),
    ("add an archive", BOTH, "ADD t.tar /t/\n"),
    ("onbuild", BOTH, "ONBUILD ENV A=1\n"),
    ("escape", BOTH, "!# escape=`\nFROM scratch\nENV A=x `\n  B=y\n"),
    ("syntax", BOTH, "!# syntax=docker/dockerfile:1\nFROM scratch\nENV A=1\n"),
    ("no instruction", NEITHER, "INSTALL x\n"),
    ("env without value", NEITHER, "ENV A\n"),
    ("env with a word", NEITHER, "ENV A=1 B\n"),
    ("copy of one", NEITHER, "COPY f\n"),
    ("copy of what is not there", NEITHER, "COPY nowhere /\n"),
    ("copy with an unknown flag", NEITHER, "COPY --form=x f /\n"),
    ("unclosed quote", NEITHER, "ENV A=\"1\n"),
    ("from with a word", NEITHER, "!FROM scratch x\n"),
    ("nothing", NEITHER, "!# nothing\n"),
    ("shell in words", NEITHER, "SHELL /bin/sh\n"),
    ("trigger of a trigger", NEITHER, "ONBUILD ONBUILD ENV A=1\n"),
    ("no such stage", NEITHER, "FROM scratch AS x\n", "--target", "y"),
    ("comment behind words", NEITHER, "ENV A=1 # c=d\n"),
    ("no signal", NEITHER, "STOPSIGNAL SIGNOTHING\n"),
    # Heredocs came to buildah after 1.28.
    ("heredoc", OURS, "COPY <<EOF /h\nhi\nEOF\n"),
    # BuildKit's; this buildah wants a `:` in every substitution.
    ("patterns", OURS, "ENV F=a.tar.gz\nENV A=${F%.*} B=${F#*.} C=${F/tar/x}\n"),
    # A path above the context is a mistake wherever it comes from; buildah takes it from the context.
    ("above the context", THEIRS, "COPY ../f /\n"),
    ("a stage below", NEITHER, "COPY --from=x /f /\nFROM scratch AS x\nCOPY f /\nFROM scratch\nCOPY --from=0 /f /\n"),
    # BuildKit refuses these too: one file made of two, no name, an instruction without a stage, a port that is none.
    ("copy of several to a file", THEIRS, "COPY f d/x /to\n"),
    ("bad substitution", THEIRS, "ENV A=${}\n"),
    ("before from", THEIRS, "!ENV A=1\nFROM scratch\n"),
    ("no port", THEIRS, "EXPOSE x\n"),
    # Names of stages are the same in either case for BuildKit.
    ("stage by another case", OURS, "FROM scratch AS Y\nENV B=1\nFROM y\nENV C=1\n"),
]

SAME = ("Env", "Cmd", "Entrypoint", "Labels", "ExposedPorts", "Volumes", "User", "WorkingDir", "StopSignal", "Shell", "OnBuild",
        "Healthcheck")


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--only", default="")
    only = words.parse_args().only
    if not shutil.which("buildah"):
        print("dockerfiles: skipped, buildah is not installed")
        sys.exit(1 if os.environ.get("JOBC_ORACLES") == "required" else 77)
    cases = [case for case in CASES if only in case[0]]
    with tempfile.TemporaryDirectory() as directory:
        wrong = [line for case in cases for line in check(Path(directory), *case)]
    for line in wrong:
        print(f"dockerfiles: {line}")
    print(f"dockerfiles: {len(cases)} cases, {len(wrong)} wrong")
    sys.exit(1 if wrong or not cases else 0)


def check(directory, name, who, text, *more):
    context = directory / "context"
    if not context.exists():
        (context / "d").mkdir(parents=True)
        for file in ("f", "a b", "d/x", "d/y.o"):
            (context / file).write_text(f"{file}\n")
        subprocess.run(["tar", "-C", context / "d", "-cf", context / "t.tar", "x"], check=True)
    text = text[1:] if text.startswith("!") else f"FROM scratch\n{text}"
    (context / "Dockerfile").write_bytes(text.encode())
    ours, ours_said = by_us(directory, context, more)
    theirs, theirs_said = by_buildah(directory, context, more)
    takes = {(True, True): BOTH, (False, False): NEITHER, (True, False): OURS, (False, True): THEIRS}
    found = takes[ours is not None, theirs is not None]
    if os.environ.get("JOBC_VERBOSE"):
        print(f"dockerfiles: {name}: {found}")
    if found != who:
        yield f"{name}: {found} takes it, where it should be {who}\n{text}\n{ours_said}\n{theirs_said}"
    elif found == BOTH:
        for field in SAME:
            if normal(ours, field) != normal(theirs, field):
                yield f"{name}: {field} is {normal(ours, field)}, and buildah's {normal(theirs, field)}"


def normal(config, field):
    """A field as far as it means something: order of variables, marks of the builder and what is left out do not."""
    value = config.get(field) or None
    if field == "Labels" and value:
        value = {key: text for key, text in value.items() if key != "io.buildah.version"} or None
    if field == "WorkingDir" and value == "/":
        return None
    if field == "Env":
        return sorted(entry for entry in value or [] if not entry.startswith("PATH="))
    return value


def by_us(directory, context, more):
    home = Home(directory / "home")
    home.directory.mkdir(exist_ok=True)
    done = home.run("image", "build", "--builder", "embedded", "-t", "tested:1", *more, context)
    if done.returncode not in (0, 1):
        return None, f"jobc ended with {done.returncode}: {done.stderr}"
    if done.returncode == 1:
        return None, done.stderr
    shown = home.run("image", "inspect", "tested:1")
    return json.loads(shown.stdout)["config"].get("config", {}), ""


def by_buildah(directory, context, more):
    where = ["--root", directory / "root", "--runroot", directory / "run", "--storage-driver", "vfs"]
    done = subprocess.run(["buildah", *where, "bud", "--quiet", "--isolation", "chroot", "--format", "docker",
                           "--tag", "tested", *more, context], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, done.stderr
    shown = subprocess.run(["buildah", *where, "inspect", "--type", "image", "tested"],
                           capture_output=True, text=True, check=True)
    return json.loads(shown.stdout)["Docker"]["config"], ""


if __name__ == "__main__":
    main()
