"""Dockerfiles that both builders build: name and text.

The base image is busybox; every context has the same files.
"""

CONTEXT = {
    "a.txt": "a\n", "b.txt": "b\n", "notes.md": "n\n",
    "src/main.c": "int main;\n", "src/sub/deep.h": "#h\n", "src/.hidden": "h\n",
    "scripts/run.sh": "#!/bin/sh\necho run\n", "skip/secret.log": "s\n", "skip/keep.txt": "k\n",
}
MODES = {"scripts/run.sh": 0o755, "notes.md": 0o600}
LINKS = {"link.txt": "a.txt", "src/dangling": "/no/where", "directory": "src"}

CASES = {
    "copy-file": "FROM base\nCOPY a.txt /copied\n",
    "copy-into-directory": "FROM base\nCOPY a.txt b.txt /new/directory/\n",
    "copy-directory": "FROM base\nCOPY src /srv/src\n",
    "copy-directory-onto-directory": "FROM base\nRUN mkdir -p -m 700 /srv/src/sub && echo x > /srv/src/kept\nCOPY src/ /srv/src/\n",
    "copy-all": "FROM base\nWORKDIR /app\nCOPY . .\n",
    "copy-glob": "FROM base\nCOPY *.txt /texts/\nCOPY s?c/main.* /code/\n",
    "copy-mode-of-file": "FROM base\nCOPY scripts/run.sh notes.md /usr/local/bin/\nRUN /usr/local/bin/run.sh\n",
    "copy-followed-link": "FROM base\nCOPY link.txt /plain\n",
    "copy-chown-numbers": "FROM base\nCOPY --chown=123:456 a.txt src /owned/\n",
    "copy-chown-names": "FROM base\nCOPY --chown=daemon:mail a.txt /by-name\n",
    "copy-chmod": "FROM base\nCOPY --chmod=640 a.txt /m640\n",
    "copy-json": "FROM base\nCOPY [\"a.txt\", \"/with blank/b c\"]\n",
    "copy-through-link": "FROM base\nRUN mkdir /real && ln -s /real /via\nCOPY a.txt /via/\n",
    "copy-over-file": "FROM base\nRUN echo old > /f && chmod 777 /f\nCOPY a.txt /f\n",
    "add-archive": "FROM base\nADD tree.tar.gz /unpacked/\n",
    "add-file": "FROM base\nADD a.txt /added/\n",
    "ignored": "FROM base\nCOPY . /all/\n",
    "run-shell": "FROM base\nRUN echo one > /one && chmod 600 /one; mkdir -m 1777 /t\n",
    "run-exec": "FROM base\nRUN [\"/bin/sh\", \"-c\", \"echo $0 > /zero\", \"arg\"]\n",
    "run-removes": "FROM base\nRUN mkdir /d && touch /d/a /d/b\nRUN rm /d/a\nRUN rm -r /d && mkdir /d && touch /d/c\n",
    "run-links": "FROM base\nRUN echo x > /x && ln /x /y && ln -s x /z\n",
    "run-owners": "FROM base\nRUN touch /o && chown 12:34 /o && chmod 6755 /o\n",
    "run-environment": "FROM base\nARG WHO=you\nENV A=1 B=\"two words\"\nRUN echo \"$WHO $A $B $PATH $HOME $PWD\" > /env\n",
    "run-user": "FROM base\nRUN mkdir -m 777 /open\nUSER daemon\nRUN id -u > /open/uid; id -g >> /open/uid\n",
    "run-workdir": "FROM base\nWORKDIR /one\nWORKDIR two\nRUN pwd > pwd\n",
    "workdir-of-user": "FROM base\nUSER daemon\nWORKDIR /mine/deep\nUSER 5:6\nWORKDIR below\nUSER root\nWORKDIR /mine/roots\n",
    "run-shell-changed": "FROM base\nSHELL [\"/bin/sh\", \"-xc\"]\nRUN echo $- > /flags\n",
    "stages": "FROM base AS one\nRUN echo built > /out && chown 7:7 /out\nFROM base\nCOPY --from=one /out /in\nCOPY --from=0 /etc/passwd /passwd\n",
    "stage-on-stage": "FROM base AS one\nENV X=1\nRUN echo 1 > /one\nFROM one\nRUN echo $X > /two\n",
    "from-scratch": "FROM scratch\nCOPY a.txt /only\n",
    "settings": "FROM base\nLABEL a=b \"c d\"=\"e f\"\nEXPOSE 80 443/tcp 53/udp\nVOLUME /data\nSTOPSIGNAL SIGTERM\nUSER 5:6\nCMD [\"x\", \"y\"]\n",
    "entrypoint-takes-cmd": "FROM base AS b\nCMD [\"old\"]\nFROM b\nENTRYPOINT [\"new\"]\n",
    "shell-forms": "FROM base\nENTRYPOINT exec top\nCMD echo $HOME\n",
    "onbuild": "FROM base AS parent\nONBUILD RUN echo triggered > /triggered\nFROM parent\nRUN cat /triggered\n",
    "args": "ARG TAG=base\nFROM ${TAG}\nARG V=1\nARG W=${V}2\nENV E=${W:-x} F=${NONE:-none} G=${V:+yes}\nRUN echo $V $W > /args\n",
    "maintainer": "FROM base\nMAINTAINER somebody@example.org\n",
}

IGNORES = {"ignored": "skip/*\n!skip/keep.txt\n**/*.h\n*.md\n.dockerignore\n"}

# These cannot be built without a range of ids, and must fail with a message.
NEEDS_IDS = {"run-owners", "run-user", "stages"}
