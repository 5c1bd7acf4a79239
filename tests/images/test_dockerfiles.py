"""Parses Dockerfiles with jobc and with buildah: both accept them, with the same configuration, or both reject them.

They are based on `scratch` and run nothing, so that only the parsers differ. For known differences the case says who is right
and why.
"""

import json
import subprocess

import pytest

from home import Home

pytestmark = [pytest.mark.duration(5), pytest.mark.needs("buildah")]

ACCEPTED, REJECTED, OURS, THEIRS = "both", "neither", "only jobc", "only buildah"

# Name, who accepts it, Dockerfile after `FROM scratch`, more arguments. Files of the context: f, a b, d/x, d/y.o, t.tar.
CASES = [
    ("env", ACCEPTED, "ENV A=1 B=\"two words\" C=c\\ d\nENV D d  e\n"),
    ("env of before", ACCEPTED, "ENV A=1\nENV A=2 B=$A\nENV C=$A\n"),
    ("env quotes", ACCEPTED, "ENV A='$X' B=\"it's\" C=\"a\\\"b\" D=a\\$b\n"),
    ("env empty", ACCEPTED, "ENV A= B=\"\"\n"),
    ("expansion", ACCEPTED, "ENV A=1 E=\nENV B=${A:-d} C=${U:-d} D=${E:-d} F=${A:+s} G=${U:+s} H=x${A}y I=$A-$U\n"),
    ("nested", ACCEPTED, "ENV A=1\nENV B=${U:-${A:-x}}\n"),
    ("arg", ACCEPTED, "ARG A=1\nARG B=$A\nARG C\nENV X=$A-$B-$C\n"),
    ("arg given", ACCEPTED, "ARG A=1\nENV X=$A\n", "--build-arg", "A=2"),
    ("env over arg", ACCEPTED, "ENV A=env\nARG A=arg\nENV X=$A\n"),
    ("arg then env", ACCEPTED, "ARG A=arg\nENV A=env$A\nENV X=$A\n"),
    ("labels", ACCEPTED, "ENV A=1\nLABEL \"k.x\"=v l=\"$A b\" m='$A'\nLABEL n o p\n"),
    ("label over lines", ACCEPTED, "LABEL a=\"1\" \\\n  # no\n  b=\"2\"\n"),
    ("cmd json", ACCEPTED, "CMD [\"a\", \"b c\", \"\\u00e9\"]\n"),
    ("cmd shell", ACCEPTED, "CMD echo \"$HOME\"  &&  b\n"),
    ("cmd not json", ACCEPTED, "CMD ['a']\n"),
    ("entrypoint and cmd", ACCEPTED, "CMD [\"x\"]\nENTRYPOINT [\"e\"]\nCMD [\"y\"]\n"),
    ("entrypoint shell", ACCEPTED, "ENTRYPOINT exec e $X\n"),
    # The effect on a shell form is not compared: this buildah always uses /bin/sh.
    ("shell", ACCEPTED, "SHELL [\"/bin/bash\", \"-c\"]\nCMD [\"a\"]\n"),
    ("expose", ACCEPTED, "ENV P=81\nEXPOSE 80 $P 82/udp\n"),
    ("volume", ACCEPTED, "VOLUME /a /b\nVOLUME [\"/c d\"]\n"),
    ("workdir", ACCEPTED, "ENV A=a\nWORKDIR /x\nWORKDIR $A/b\nWORKDIR ../c\n"),
    ("user", ACCEPTED, "ENV U=me\nUSER $U:1\n"),
    ("stopsignal", ACCEPTED, "STOPSIGNAL SIGINT\n"),
    ("healthcheck", ACCEPTED, "HEALTHCHECK --interval=1m30s --retries=2 CMD x y\n"),
    ("maintainer", ACCEPTED, "MAINTAINER me <me@x>\n"),
    ("case", ACCEPTED, "env A=1\nCmd [\"a\"]\n"),
    ("comments", ACCEPTED, "# a\n  # b\nENV A=1#c B=2\n"),
    ("crlf", ACCEPTED, "ENV A=1\r\nENV B=2 \\\r\n  C=3\r\n"),
    ("gap", ACCEPTED, "ENV A=1 \\\n\n  B=2\n"),
    ("stages", ACCEPTED, "ENV A=1\nFROM scratch AS x\nENV B=1\nFROM scratch\nENV C=1\n"),
    ("stage by name", ACCEPTED, "ENV A=1\nFROM scratch AS x\nENV B=1\nFROM x\nENV C=1\n"),
    ("target", ACCEPTED, "ENV A=1\nFROM scratch AS x\nENV B=1\nFROM scratch\nENV C=1\n", "--target", "x"),
    ("global arg", ACCEPTED, "ARG V\nENV X=$V\n", "--build-arg", "V=g"),
    ("copy", ACCEPTED, "COPY f d /to/\nCOPY [\"a b\", \"/c\"]\nCOPY d/*.o d/[x] /g/\n"),
    ("copy variables", ACCEPTED, "ARG D=d\nCOPY $D/x ${U:-/to}\n"),
    ("copy from a stage", ACCEPTED, "COPY f /\nFROM scratch\nCOPY --from=0 /f /g\n"),
    ("copy owner", ACCEPTED, "COPY --chown=1:2 --chmod=0600 f /\n"),
    ("add an archive", ACCEPTED, "ADD t.tar /t/\n"),
    ("onbuild", ACCEPTED, "ONBUILD ENV A=1\n"),
    ("escape", ACCEPTED, "!# escape=`\nFROM scratch\nENV A=x `\n  B=y\n"),
    ("syntax", ACCEPTED, "!# syntax=docker/dockerfile:1\nFROM scratch\nENV A=1\n"),
    ("no instruction", REJECTED, "INSTALL x\n"),
    ("env without value", REJECTED, "ENV A\n"),
    ("env with a word", REJECTED, "ENV A=1 B\n"),
    ("copy of one", REJECTED, "COPY f\n"),
    ("copy of a missing file", REJECTED, "COPY nowhere /\n"),
    ("copy with an unknown flag", REJECTED, "COPY --form=x f /\n"),
    ("unclosed quote", REJECTED, "ENV A=\"1\n"),
    ("from with a word", REJECTED, "!FROM scratch x\n"),
    ("nothing", REJECTED, "!# nothing\n"),
    ("shell in words", REJECTED, "SHELL /bin/sh\n"),
    ("trigger of a trigger", REJECTED, "ONBUILD ONBUILD ENV A=1\n"),
    ("no such stage", REJECTED, "FROM scratch AS x\n", "--target", "y"),
    ("comment after arguments", REJECTED, "ENV A=1 # c=d\n"),
    ("unknown signal", REJECTED, "STOPSIGNAL SIGNOTHING\n"),
    # buildah supports heredocs after 1.28.
    ("heredoc", OURS, "COPY <<EOF /h\nhi\nEOF\n"),
    # BuildKit accepts it; this buildah requires a `:` in every substitution.
    ("patterns", OURS, "ENV F=a.tar.gz\nENV A=${F%.*} B=${F#*.} C=${F/tar/x}\n"),
    # A path above the context is an error; buildah reads it from the context.
    ("above the context", THEIRS, "COPY ../f /\n"),
    ("a stage below", REJECTED, "COPY --from=x /f /\nFROM scratch AS x\nCOPY f /\nFROM scratch\nCOPY --from=0 /f /\n"),
    # BuildKit rejects these too: two files copied to one, a missing name, an instruction without a stage, an invalid port.
    ("copy of several to a file", THEIRS, "COPY f d/x /to\n"),
    ("bad substitution", THEIRS, "ENV A=${}\n"),
    ("before from", THEIRS, "!ENV A=1\nFROM scratch\n"),
    ("invalid port", THEIRS, "EXPOSE x\n"),
    # Stage names are case-insensitive in BuildKit.
    ("stage by another case", OURS, "FROM scratch AS Y\nENV B=1\nFROM y\nENV C=1\n"),
]

COMPARED_FIELDS = ("Env", "Cmd", "Entrypoint", "Labels", "ExposedPorts", "Volumes", "User", "WorkingDir", "StopSignal", "Shell", "OnBuild",
        "Healthcheck")


@pytest.fixture(scope="module")
def context(shared):
    context = shared / "context"
    (context / "d").mkdir(parents=True)
    for file in ("f", "a b", "d/x", "d/y.o"):
        (context / file).write_text(f"{file}\n")
    subprocess.run(["tar", "-C", context / "d", "-cf", context / "t.tar", "x"], check=True)
    return context


@pytest.mark.parametrize("expected, text, more", [pytest.param(expected, text, more, id=name.replace(" ", "_")) for name, expected, text, *more in CASES])
def test_jobc_and_buildah_agree_on_a_dockerfile(shared, context, expected, text, more):
    text = text[1:] if text.startswith("!") else f"FROM scratch\n{text}"
    (context / "Dockerfile").write_bytes(text.encode())
    ours, our_error = build_with_jobc(shared, context, more)
    theirs, their_error = build_with_buildah(shared, context, more)
    outcomes = {(True, True): ACCEPTED, (False, False): REJECTED, (True, False): OURS, (False, True): THEIRS}
    outcome = outcomes[ours is not None, theirs is not None]
    assert outcome == expected, f"{text}\n{our_error}\n{their_error}"
    if outcome == ACCEPTED:
        assert {field: normal(ours, field) for field in COMPARED_FIELDS} == {field: normal(theirs, field) for field in COMPARED_FIELDS}


def normal(config, field):
    """A field without what does not matter: the order of variables, labels of the builder, empty values."""
    value = config.get(field) or None
    if field == "Labels" and value:
        value = {key: text for key, text in value.items() if key != "io.buildah.version"} or None
    if field == "Env":
        return sorted(entry for entry in value or [] if not entry.startswith("PATH="))
    return value


def build_with_jobc(directory, context, more):
    home = Home(directory / "home")
    result = home.run("image", "build", "--builder", "embedded", "-t", "tested:1", *more, context)
    if result.returncode not in (0, 1):
        return None, f"jobc exited with {result.returncode}: {result.stderr}"
    if result.returncode == 1:
        return None, result.stderr
    shown = home.run("image", "inspect", "tested:1")
    return json.loads(shown.stdout)["config"].get("config", {}), ""


def build_with_buildah(directory, context, more):
    where = ["--root", directory / "root", "--runroot", directory / "run", "--storage-driver", "vfs"]
    result = subprocess.run(["buildah", *where, "bud", "--quiet", "--isolation", "chroot", "--format", "docker",
                           "--tag", "tested", *more, context], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return None, result.stderr
    shown = subprocess.run(["buildah", *where, "inspect", "--type", "image", "tested"],
                           capture_output=True, text=True, check=True)
    return json.loads(shown.stdout)["Docker"]["config"], ""
