#!/usr/bin/env python3
"""Checks `jobc mcp` with a client that others wrote: the Python library of the Model Context Protocol.

It lists the tools, calls each, and provokes errors. The library itself checks messages, and results against their schemas.
"""

import asyncio
import contextlib
import inspect
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from common import REPOSITORY, Check

TIMEOUT = 120
JOB = "version: 1\nname: small\nroles:\n  main:\n    image: debian:12\n    run: echo $SECRET_OF_THE_SERVER\n    resources: {cpu: 1, memory: 64MiB}\n"
WRONG = JOB.replace("    image", "    imagex")
READING = ["check", "plan", "explain", "diff", "why", "status", "logs"]


def directory_of_jobs(top):
    """A repository with a job, a changed job, and a link that leads out of it."""
    root = top / "root"
    (root / "wrong").mkdir(parents=True)
    (top / "secret.yaml").write_text("the secret text")
    (root / "job.yaml").write_text(JOB)
    (root / "wrong/job.yaml").write_text(WRONG)
    (root / "link.yaml").symlink_to("../secret.yaml")
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, timeout=TIMEOUT)
    (root / "job.yaml").write_text(JOB.replace("cpu: 1", "cpu: 2"))
    return root


class Session:
    """A client of one server."""

    def __init__(self, jobc, root, *options):
        from mcp import StdioServerParameters

        self.log = tempfile.TemporaryFile("w+")
        env = {**os.environ, "SECRET_OF_THE_SERVER": "hunter2", "XDG_STATE_HOME": str(root.parent / "state")}
        self.parameters = StdioServerParameters(command=str(jobc), args=["mcp", "--root", str(root), *options], env=env)

    @contextlib.asynccontextmanager
    async def open(self):
        from mcp import ClientSession, stdio_client

        async with stdio_client(self.parameters, errlog=self.log) as (read, write), ClientSession(read, write) as session:
            self.initialized = await session.initialize()
            self.session = session
            yield self

    async def tools(self):
        return (await self.session.list_tools()).tools

    async def call(self, name, **arguments):
        """The result of a tool, its text and its structured content."""
        result = await self.session.call_tool(name, arguments)
        return result.is_error, "\n".join(block.text for block in result.content), result.structured_content


async def reading(jobc, root):
    """The problems of the tools that change nothing."""
    problems = []

    def expect(what, holds, seen=""):
        if not holds:
            problems.append(f"{what}: {str(seen)[:600]}")

    async with Session(jobc, root).open() as client:
        expect("the version of the protocol is negotiated", client.initialized.protocol_version >= "2025-06-18", client.initialized)
        expect("the server has a name", client.initialized.server_info.name == "jobc", client.initialized)
        tools = await client.tools()
        expect("without options, tools only read", [tool.name for tool in tools] == READING, [tool.name for tool in tools])
        for tool in tools:
            expect(f"{tool.name} is marked as reading", tool.annotations.read_only_hint and tool.description, tool)

        failed, text, found = await client.call("check", job="wrong")
        expect("check has findings", not failed and found["errors"] >= 1 and found["omitted"] == 0, text)
        finding = next((one for one in found["diagnostics"] if one["code"] == "J0101"), None)
        expect("a finding has its place and fix", finding and finding["start"]["line"] == 5 and finding["fixes"][0]["edits"][0]["text"] == "image", found)
        expect("the text is the same JSON", json.loads(text) == found, text)
        failed, text, found = await client.call("check", text=JOB)
        expect("check of a text", not failed and found["errors"] == 0, text)
        failed, text, _ = await client.call("plan", text=JOB, target=["local"], set={})
        expect("plan has a summary", not failed and "small" in text, text)
        failed, text, plan = await client.call("plan", job="job.yaml", full=True)
        expect("plan as JSON", not failed and plan["jobs"][0]["name"] == "small", text)
        failed, text, _ = await client.call("plan", job="wrong")
        expect("plan of a wrong job is an error with the finding", failed and "J0101" in text, text)
        for topic in ("J0101", "roles.retry"):
            failed, text, _ = await client.call("explain", topic=topic)
            expect(f"explain {topic}", not failed and len(text) > 100, text)
        failed, text, found = await client.call("diff")
        changed = [change["place"] for file in found["files"] for change in file["changes"]] if found else []
        expect("diff with HEAD", not failed and any("cpu" in place for place in changed), text)
        failed, text, found = await client.call("diff", base="wrong/job.yaml")
        expect("diff with a job that has errors", failed and "J0101" in text, text)
        failed, text, found = await client.call("why", file="job.yaml", line=7)
        expect("why has effects", not failed and found["effects"], text)
        failed, text, found = await client.call("status")
        expect("status without jobs", not failed and found["jobs"] == [], text)
        failed, text, _ = await client.call("logs", job="missing.1")
        expect("logs of a missing job", failed and "missing" in text, text)

        for arguments in ({"job": "../secret.yaml"}, {"job": "link.yaml"}, {"job": "/etc/passwd"}, {"job": "job.yaml", "targets": "link.yaml"}):
            failed, text, _ = await client.call("check", **arguments)
            expect(f"{arguments} is outside", failed and "outside of the root directory" in text and "secret text" not in text, text)
        outside = JOB.replace("image: debian:12", "image: {dockerfile: ../secret.yaml}")
        failed, text, _ = await client.call("check", text=outside)
        expect("a file that a job names is outside", "secret text" not in text and "J0601" not in text and not failed, text)
        parameter = JOB.replace("roles:", "params:\n  value: {default: {env: SECRET_OF_THE_SERVER}}\nroles:")
        failed, text, _ = await client.call("plan", text=parameter, full=True)
        expect("a parameter does not read the environment", "hunter2" not in text, text)

        for name, arguments, words in (
            ("check", {"jop": "job.yaml"}, "did you mean `job`?"),
            ("check", {"job": "job.yaml", "text": JOB}, "either `job` or `text`"),
            ("check", {"job": "missing.yaml"}, "no such file"),
            ("why", {"file": "job.yaml"}, "`line` is missing"),
            ("why", {"file": "job.yaml", "line": 0}, "`line` must be"),
            ("status", {"job": "--help"}, "`job` must be a name"),
            ("explain", {"topic": "J9999"}, "unknown code"),
        ):
            failed, text, _ = await client.call(name, **arguments)
            expect(f"{name} {arguments}", failed and words in text, text)
        for name in ("fix", "run", "nothing"):
            try:
                problems.append(f"{name} was called: {await client.call(name)}")
            except Exception as error:  # The library's own type of error.
                expect(f"{name} is an error of the protocol", name in str(error), error)
        await asyncio.gather(*(client.call("check", text=JOB) for _ in range(20)))
        client.log.seek(0)
        expect("the log is empty", client.log.read() == "")
    return problems


async def changing(jobc, root):
    """The problems of the tools that options allow."""
    problems = []
    async with Session(jobc, root, "--allow-write", "--allow-run").open() as client:
        tools = {tool.name: tool for tool in await client.tools()}
        if sorted(tools) != sorted([*READING, "fix", "fmt", "run", "submit", "stop"]):
            problems.append(f"the tools are {sorted(tools)}")
        if any(tools[name].annotations.read_only_hint for name in ("fix", "fmt", "run", "submit", "stop")):
            problems.append("a tool that changes something is marked as reading")
        failed, text, found = await client.call("fix", job="wrong")
        if failed or found["errors"] or (root / "wrong/job.yaml").read_text() != JOB:
            problems.append(f"fix: {text}")
        failed, text, _ = await client.call("fmt", file=".")
        if failed or "resources:\n" not in (root / "job.yaml").read_text() and "job.yaml" not in text:
            problems.append(f"fmt: {text}")
        failed, text, _ = await client.call("stop", job="missing.1")
        if not failed or "missing" not in text:
            problems.append(f"stop: {text}")
    return problems


async def newest(jobc, root):
    """The problems with the way of the newest version of the protocol, which has no `initialize`."""
    from mcp import Client, StdioServerParameters

    async with Client(StdioServerParameters(command=str(jobc), args=["mcp", "--root", str(root)])) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("check", {"text": JOB})
        return [] if names == READING and result.structured_content["errors"] == 0 else [f"{names} {result}"]


def raw(jobc, root):
    """The problems with messages that no library sends, and with clients that go."""

    def converse(lines, **options):
        text = "".join(f"{line}\n" for line in lines)
        done = subprocess.run([str(jobc), "mcp"], cwd=root, input=text, capture_output=True, text=True, timeout=TIMEOUT, **options)
        return done, [json.loads(line) for line in done.stdout.splitlines()]

    start = {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    first = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start})
    done, answers = converse([first, "{", "[]", '{"jsonrpc":"2.0","id":2}', '{"jsonrpc":"2.0","id":3,"method":"no/such"}',
                              '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{}}', "x" * 5_000_000, '{"jsonrpc":"2.0","id":5,"method":"ping"}'])
    codes = [answer.get("error", {}).get("code") for answer in answers]
    if sorted(codes, key=str) != sorted([None, None, -32700, -32600, -32600, -32600, -32601, -32602], key=str) or done.returncode:
        yield f"exit code {done.returncode}, error codes {codes}: {done.stdout[:500]}"
    if not answers or answers[0]["result"]["protocolVersion"] < "2025-06-18":
        yield f"an unknown version gets {answers[:1]}"
    if done.stderr:
        yield f"the log has {done.stderr}"
    done, answers = converse([])
    if done.returncode or answers:
        yield f"an empty input gives exit code {done.returncode} and {answers}"
    # A client that no longer reads.
    server = subprocess.Popen([str(jobc), "mcp"], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    server.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        server.stdin.write(f"{first}\n")
        server.stdin.flush()
    try:
        code = server.wait(TIMEOUT)
        if code or server.stderr.read():
            yield f"exit code {code} for a client that does not read"
    except subprocess.TimeoutExpired:
        server.kill()
        yield "it goes on for a client that does not read"


def cancelled(jobc, root):
    """The problems with a call that is cancelled: its process, which waits for a pipe, must end."""
    pipe = root / "pipe"
    os.mkfifo(pipe)
    server = subprocess.Popen([str(jobc), "mcp"], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(method, **message):
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, **message}) + "\n")
        server.stdin.flush()

    def children():
        return Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()

    def wait(wanted):
        for _ in range(1200):
            if bool(children()) == wanted:
                return True
            subprocess.run(["sleep", "0.05"], check=True)
        return False

    try:
        start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        send("initialize", id=1, params=start)
        server.stdout.readline()
        send("notifications/initialized")
        for ending in ("cancel", "close"):
            send("tools/call", id=ending, params={"name": "check", "arguments": {"job": "job.yaml", "targets": "pipe"}})
            if not wait(True):
                yield "the call started no process"
            if ending == "cancel":
                send("notifications/cancelled", params={"requestId": ending, "reason": "test"})
                if not wait(False):
                    yield "the process of a cancelled call goes on"
                send("ping", id="alive")
                answer = json.loads(server.stdout.readline())
                if answer.get("id") != "alive":
                    yield f"after a cancelled call there is {answer}"
        server.stdin.close()
        if server.wait(TIMEOUT):
            yield f"exit code {server.returncode}"
    finally:
        server.kill()
        server.wait()


def main():
    check = Check("mcp_client", "parts")
    if check.given:
        check.skip("it makes its own jobs")
    jobc = Path(os.environ.get("JOBC", REPOSITORY / "target/debug/jobc")).resolve()
    if not jobc.exists():
        check.missing("jobc", "`cargo build`")
    try:
        import mcp  # noqa: F401
    except ImportError:
        check.missing("mcp")
    for name, part in (("reading", reading), ("changing", changing), ("newest", newest), ("raw", raw), ("cancelled", cancelled)):
        top = Path(tempfile.mkdtemp(prefix="jobc-oracle-"))
        try:
            root = directory_of_jobs(top)
            run = part(jobc, root)
            problems = asyncio.run(asyncio.wait_for(run, TIMEOUT)) if inspect.iscoroutine(run) else list(run)
            check.record(REPOSITORY / f"tests/oracles/mcp_client.py ({name})", problems)
        finally:
            shutil.rmtree(top)
    check.end()


main()
