"""Checks `jobc mcp` with a client that others wrote: the Python library of the Model Context Protocol.

It lists the tools, calls each, and provokes errors. The library itself checks messages, and results against their schemas.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import tempfile
from pathlib import Path

import needs
import pytest

mcp = needs.package("mcp")
pytestmark = pytest.mark.timeout(120)
TIMEOUT = 120
JOB = "version: 1\nname: small\nroles:\n  main:\n    image: debian:12\n    run: echo $SECRET_OF_THE_SERVER\n    resources: {cpu: 1, memory: 64MiB}\n"
WRONG = JOB.replace("    image", "    imagex")
READING = ["check", "plan", "explain", "diff", "why", "status", "logs"]
CHANGING = ["fix", "fmt", "run", "submit", "stop"]


@pytest.fixture
def root(tmp_path):
    """A repository with a job, a changed job, and a link that leads out of it."""
    root = tmp_path / "root"
    (root / "wrong").mkdir(parents=True)
    (tmp_path / "secret.yaml").write_text("the secret text")
    (root / "job.yaml").write_text(JOB)
    (root / "wrong/job.yaml").write_text(WRONG)
    (root / "link.yaml").symlink_to("../secret.yaml")
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, timeout=TIMEOUT)
    (root / "job.yaml").write_text(JOB.replace("cpu: 1", "cpu: 2"))
    return root


@contextlib.asynccontextmanager
async def client(jobc, root, *options):
    """A client of one server, which must write nothing to its log."""
    env = {**os.environ, "SECRET_OF_THE_SERVER": "hunter2", "XDG_STATE_HOME": str(root.parent / "state")}
    parameters = mcp.StdioServerParameters(command=str(jobc), args=["mcp", "--root", str(root), *options], env=env)
    with tempfile.TemporaryFile("w+") as log:
        async with mcp.stdio_client(parameters, errlog=log) as (read, write), mcp.ClientSession(read, write) as session:
            session.initialized = await session.initialize()
            yield session
        log.seek(0)
        assert log.read() == ""


async def call(session, tool, **arguments):
    """Whether a tool failed, its text and its structured content."""
    result = await session.call_tool(tool, arguments)
    return result.is_error, "\n".join(block.text for block in result.content), result.structured_content


@pytest.mark.anyio
async def test_without_options_tools_only_read(jobc, root):
    async with client(jobc, root) as session:
        assert session.initialized.protocol_version >= "2025-06-18"
        assert session.initialized.server_info.name == "jobc"
        tools = (await session.list_tools()).tools
        assert [tool.name for tool in tools] == READING
        assert all(tool.annotations.read_only_hint and tool.description for tool in tools), tools


@pytest.mark.anyio
async def test_check_has_findings_with_their_places_and_fixes(jobc, root):
    async with client(jobc, root) as session:
        failed, text, found = await call(session, "check", job="wrong")
        assert not failed and found["errors"] >= 1 and found["omitted"] == 0, text
        finding = next(one for one in found["diagnostics"] if one["code"] == "J0101")
        assert finding["start"]["line"] == 5 and finding["fixes"][0]["edits"][0]["text"] == "image", found
        assert json.loads(text) == found
        failed, text, found = await call(session, "check", text=JOB)
        assert not failed and found["errors"] == 0, text
        await asyncio.gather(*(call(session, "check", text=JOB) for _ in range(20)))


@pytest.mark.anyio
async def test_tools_that_read_have_results(jobc, root):
    async with client(jobc, root) as session:
        failed, text, _ = await call(session, "plan", text=JOB, target=["local"], set={})
        assert not failed and "small" in text, text
        failed, text, plan = await call(session, "plan", job="job.yaml", full=True)
        assert not failed and plan["jobs"][0]["name"] == "small", text
        failed, text, _ = await call(session, "plan", job="wrong")
        assert failed and "J0101" in text, text
        for topic in ("J0101", "roles.retry"):
            failed, text, _ = await call(session, "explain", topic=topic)
            assert not failed and len(text) > 100, text
        failed, text, found = await call(session, "diff")
        assert not failed and any("cpu" in change["place"] for file in found["files"] for change in file["changes"]), text
        failed, text, found = await call(session, "diff", base="wrong/job.yaml")
        assert failed and "J0101" in text, text
        failed, text, found = await call(session, "why", file="job.yaml", line=7)
        assert not failed and found["effects"], text
        failed, text, found = await call(session, "status")
        assert not failed and found["jobs"] == [], text
        failed, text, _ = await call(session, "logs", job="missing.1")
        assert failed and "missing" in text, text


@pytest.mark.anyio
async def test_files_outside_of_the_root_and_the_environment_are_not_read(jobc, root):
    async with client(jobc, root) as session:
        for arguments in ({"job": "../secret.yaml"}, {"job": "link.yaml"}, {"job": "/etc/passwd"}, {"job": "job.yaml", "targets": "link.yaml"}):
            failed, text, _ = await call(session, "check", **arguments)
            assert failed and "outside of the root directory" in text and "secret text" not in text, (arguments, text)
        outside = JOB.replace("image: debian:12", "image: {dockerfile: ../secret.yaml}")
        failed, text, _ = await call(session, "check", text=outside)
        assert "secret text" not in text and "J0601" not in text and not failed, text
        parameter = JOB.replace("roles:", "params:\n  value: {default: {env: SECRET_OF_THE_SERVER}}\nroles:")
        _, text, _ = await call(session, "plan", text=parameter, full=True)
        assert "hunter2" not in text


@pytest.mark.anyio
@pytest.mark.parametrize("tool, arguments, words", [
    ("check", {"jop": "job.yaml"}, "did you mean `job`?"),
    ("check", {"job": "job.yaml", "text": JOB}, "either `job` or `text`"),
    ("check", {"job": "missing.yaml"}, "no such file"),
    ("why", {"file": "job.yaml"}, "`line` is missing"),
    ("why", {"file": "job.yaml", "line": 0}, "`line` must be"),
    ("status", {"job": "--help"}, "`job` must be a name"),
    ("explain", {"topic": "J9999"}, "unknown code"),
])
async def test_wrong_arguments_are_errors(jobc, root, tool, arguments, words):
    async with client(jobc, root) as session:
        failed, text, _ = await call(session, tool, **arguments)
        assert failed and words in text, text


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["fix", "run", "nothing"])
async def test_a_tool_that_is_not_listed_is_an_error_of_the_protocol(jobc, root, tool):
    async with client(jobc, root) as session:
        with pytest.raises(mcp.MCPError, match=tool):
            await call(session, tool)


@pytest.mark.anyio
async def test_options_allow_tools_that_change_something(jobc, root):
    async with client(jobc, root, "--allow-write", "--allow-run") as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert sorted(tools) == sorted([*READING, *CHANGING])
        assert not any(tools[name].annotations.read_only_hint for name in CHANGING)
        failed, text, found = await call(session, "fix", job="wrong")
        assert not failed and not found["errors"] and (root / "wrong/job.yaml").read_text() == JOB, text
        failed, text, _ = await call(session, "fmt", file=".")
        assert not failed and ("resources:\n" in (root / "job.yaml").read_text() or "job.yaml" in text), text
        failed, text, _ = await call(session, "stop", job="missing.1")
        assert failed and "missing" in text, text


@pytest.mark.anyio
async def test_errors_advise_what_an_agent_can_do(jobc, root):
    (root / "targets.yaml").write_text("version: 1\ntargets:\n  here: {backends: [oci]}\n  other: {backends: [oci], ssh: {host: other.example}}\n")
    async with client(jobc, root) as session:
        for tool, words in (("fix", "`--allow-write`; `check` returns"), ("stop", "`--allow-run`; `plan` shows")):
            with pytest.raises(mcp.MCPError, match=f"ask the user to start the server with {words}"):
                await call(session, tool, job="job.yaml")
        failed, text, _ = await call(session, "check", job="/etc/passwd")
        assert failed and text.endswith("name a path below it"), text
        failed, text, _ = await call(session, "plan", job="wrong")
        assert failed and "run `explain` with `topic: J0" in text and "jobc" not in text, text
    async with client(jobc, root, "--allow-run") as session:
        failed, text, _ = await call(session, "run", job="job.yaml", target="other")
        assert failed and "the target `other` is another machine" in text and "submit the job to it: `submit` with `target: other`" in text, text
        failed, text, _ = await call(session, "run", text=JOB.replace("debian:12", "./absent.tar"), target="here")
        assert failed and "no such file" in text, text
        failed, text, _ = await call(session, "submit", job="job.yaml", target="here")
        assert failed and "jobs cannot be submitted to the target `here`" in text, text
        failed, text, _ = await call(session, "run", text=JOB.replace("debian:12", "host"), target="here", allow_unenforced=True)
        assert not failed and text.startswith("small."), text
        _, text, found = await call(session, "status", job=text.split()[0])
        assert found["job"]["id"].startswith("small."), text


@pytest.mark.anyio
async def test_the_newest_protocol_without_initialize_is_spoken(jobc, root):
    async with mcp.Client(mcp.StdioServerParameters(command=str(jobc), args=["mcp", "--root", str(root)])) as session:
        assert [tool.name for tool in (await session.list_tools()).tools] == READING
        result = await session.call_tool("check", {"text": JOB})
        assert result.structured_content["errors"] == 0


def test_messages_that_no_library_sends_and_clients_that_go(jobc, root):
    def converse(lines, **options):
        text = "".join(f"{line}\n" for line in lines)
        done = subprocess.run([str(jobc), "mcp"], cwd=root, input=text, capture_output=True, text=True, timeout=TIMEOUT, **options)
        return done, [json.loads(line) for line in done.stdout.splitlines()]

    start = {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    first = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start})
    done, answers = converse([first, "{", "[]", '{"jsonrpc":"2.0","id":2}', '{"jsonrpc":"2.0","id":3,"method":"no/such"}',
                              '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{}}', "x" * 5_000_000, '{"jsonrpc":"2.0","id":5,"method":"ping"}'])
    codes = [answer.get("error", {}).get("code") for answer in answers]
    assert sorted(codes, key=str) == sorted([None, None, -32700, -32600, -32600, -32600, -32601, -32602], key=str)
    assert not done.returncode, done.stdout[:500]
    assert answers and answers[0]["result"]["protocolVersion"] >= "2025-06-18", f"an unknown version gets {answers[:1]}"
    assert not done.stderr, f"the log has {done.stderr}"
    done, answers = converse([])
    assert not done.returncode and not answers, f"an empty input gives exit code {done.returncode} and {answers}"
    # A client that no longer reads.
    server = subprocess.Popen([str(jobc), "mcp"], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    server.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        server.stdin.write(f"{first}\n")
        server.stdin.flush()
    try:
        assert server.wait(TIMEOUT) == 0 and not server.stderr.read()
    finally:
        server.kill()


def test_the_process_of_a_cancelled_call_ends(jobc, root):
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
            assert wait(True), "the call started no process"
            if ending == "cancel":
                send("notifications/cancelled", params={"requestId": ending, "reason": "test"})
                assert wait(False), "the process of a cancelled call goes on"
                send("ping", id="alive")
                answer = json.loads(server.stdout.readline())
                assert answer.get("id") == "alive", f"after a cancelled call there is {answer}"
        server.stdin.close()
        assert not server.wait(TIMEOUT), f"exit code {server.returncode}"
    finally:
        server.kill()
        server.wait()
