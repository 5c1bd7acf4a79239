"""Jobs from their text to their end, by the API alone, beside the command line."""

import hashlib
import json
import subprocess
import time

import needs
import pytest

from service import job

pytestmark = [pytest.mark.isolated, pytest.mark.duration(15)]


def test_findings_are_those_of_the_command_line(service):
    text = "version: 1\nname: x\nroles: {a: {imag: b}}\n"
    (service.open / "wrong.yaml").write_text(text)
    shown = json.loads(service.jobc("check", "--format", "json", "wrong.yaml").stdout)
    found = service.ok("POST", "/check", {"text": text})
    assert json.loads(json.dumps(found).replace("<stdin>", "wrong.yaml")) == shown and found["errors"] > 0
    answer = service.call("POST", "/jobs", {"text": text})
    assert answer.status == 422 and answer.json()["diagnostics"][0]["code"].startswith("J"), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert service.call("POST", "/plan", {"text": text}).status == 422
    assert service.ok("POST", "/build", {"text": text})["files"] == []


def test_compile(service):
    text = "version: 1\nname: shown\nparams: {n: 1}\nimage: host\nroles: {main: {instances: 2, run: 'echo ${{ params.n }}'}}\n"
    built = service.ok("POST", "/build", {"text": text, "set": {"n": 7}})
    assert built["errors"] == 0 and {file["target"] for file in built["files"]} == {"local"}
    bundle = next(file for file in built["files"] if file["path"] == "oci/main-1/config.json")
    assert "echo 7" in bundle["text"]
    assert service.ok("POST", "/plan", {"text": text})["jobs"][0]["name"] == "shown"
    diff = service.ok("POST", "/diff", {"old": text, "new": text.replace("instances: 2", "instances: 3")})["diff"]
    assert "instances" in json.dumps(diff["fields"])
    loose = "version: 1\nname: x\nimage: host\nroles:\n      main:\n            run: ls\n"
    assert service.ok("POST", "/fmt", {"text": loose})["text"] == loose.replace(" " * 12, "    ").replace(" " * 6, "  ")
    pai = ("protocolVersion: 2\nname: a\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: busybox}]\n"
           "taskRoles: {w: {instances: 1, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}, commands: [ls]}}\n")
    assert service.ok("POST", "/import", {"text": pai})["text"].startswith("version: 1")
    assert service.call("POST", "/import", {"text": "{"}).status == 422
    sweep = "version: 1\nname: mm\nimage: host\nmatrix: {a: [1, 2]}\nroles: {main: {run: ls}}\n"
    assert {file["job"] for file in service.ok("POST", "/build", {"text": sweep})["files"]} == {"mm-0", "mm-1"}


def test_from_text_to_end(service):
    ref = service.ok("POST", "/jobs", {"text": job("whole", "for i in 1 2 3; do echo line $i; sleep 0.3; done; echo bad >&2")})["ref"]
    stream = service.stream(f"/jobs/{ref}/logs")
    events = stream.until_end()
    stream.close()
    lines = [(data["stream"], data["text"]) for _, name, data in events if name == "line"]
    assert sorted(lines) == sorted([("stdout", "line 1"), ("stdout", "line 2"), ("stdout", "line 3"), ("stderr", "bad")])
    shown = service.until(ref, "succeeded")
    assert shown == json.loads(service.jobc("inspect", "--format", "json", ref).stdout)
    row = next(row for row in service.ok("GET", "/jobs")["jobs"] if row["id"] == ref)
    assert row in json.loads(service.jobc("ps", "--all", "--format", "json").stdout)
    assert service.ok("GET", f"/jobs/{ref}/source")["text"].startswith("version: 1\nname: whole")
    found = service.ok("GET", f"/jobs/{ref}/events")["events"]
    assert found == [json.loads(line) for line in service.jobc("events", "--format", "json", ref).stdout.splitlines()]
    assert service.ok("GET", f"/jobs/{ref}/reasons")["reasons"][0]["text"].startswith("succeeded")
    assert service.ok("GET", f"/jobs/{ref}/samples")["samples"] is not None
    tail = service.ok("GET", f"/jobs/{ref}/logs?tail=1")
    assert len(tail["lines"]) == 1 and tail["next"]
    assert service.call("GET", f"/jobs/{ref}/report").text.startswith("<!DOCTYPE html>")
    archive = service.call("GET", f"/jobs/{ref}/artifacts").bytes
    (service.directory / "a.tar").write_bytes(archive)
    listed = subprocess.run(["tar", "-tf", service.directory / "a.tar"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert {"plan.json", "job.yaml"} <= set(listed), listed
    service.ok("DELETE", f"/jobs/{ref}")
    assert service.call("GET", f"/jobs/{ref}").status == 404


def test_jobs_of_the_command_line_are_shown_and_outlive_the_server(make):
    service = make()
    (service.open / "job.yaml").write_text(job("outside", "sleep 600"))
    ref = service.jobc("run", "--detach").stdout.strip()
    assert service.until(ref, "running")["directory"] == str(service.open)
    own = service.ok("POST", "/jobs", {"text": job("inside", "sleep 600")})["ref"]
    service.until(own, "running")
    service.stop()
    assert {row["id"] for row in json.loads(service.jobc("ps", "--format", "json").stdout)} == {ref, own}
    service.start()
    assert {row["id"] for row in service.ok("GET", "/jobs?state=active")["jobs"]} == {ref, own}
    service.ok("POST", f"/jobs/{own}/pause")
    assert service.until(own, "paused")
    service.ok("POST", f"/jobs/{own}/resume")
    service.until(own, "running")
    service.ok("POST", f"/jobs/{own}/kill", {"signal": "TERM", "tasks": ["main"]})
    service.ok("POST", f"/jobs/{ref}/stop")
    service.until(ref, "stopped")
    assert service.call("POST", f"/jobs/{ref}/pause").status == 409
    assert service.call("DELETE", "/jobs/missing.1").status == 404


def test_list_has_filters_and_pages(make):
    service = make()
    for name in ("alpha", "beta", "gamma"):
        service.ok("POST", "/jobs", {"text": job(name)})
    for name in ("alpha", "beta", "gamma"):
        service.until(f"{name}.1", "succeeded")
    names, after = [], None
    while True:
        page = service.ok("GET", f"/jobs?limit=2{f'&after={after}' if after else ''}")
        names += [row["id"] for row in page["jobs"]]
        after = page["next"]
        if not after:
            break
    assert names == ["gamma.1", "beta.1", "alpha.1"] and page["total"] == 3
    for query, expected in (("q=BET", ["beta.1"]), ("state=failed", []), ("state=ended&q=a%20l", ["alpha.1"]), ("place=local&limit=1", ["gamma.1"])):
        assert [row["id"] for row in service.ok("GET", f"/jobs?{query}")["jobs"]] == expected, query
    for query in ("limit=0", "limit=x", "state=over", "unknown=1"):
        assert service.call("GET", f"/jobs?{query}").status == 400, query
    assert service.call("GET", "/jobs?place=nowhere").status == 404


def test_a_key_counts_once(make):
    service = make()
    body = {"text": job("keyed")}
    first = service.call("POST", "/jobs", body, Idempotency_Key="one")
    again = service.call("POST", "/jobs", body, Idempotency_Key="one")
    assert (first.status, again.status) == (201, 200) and first.json()["ref"] == again.json()["ref"]
    assert first.headers["Location"] == "/api/v1/jobs/keyed.1"
    assert service.call("POST", "/jobs", {"text": job("other")}, Idempotency_Key="one").status == 422
    service.stop()
    service.start()
    assert service.call("POST", "/jobs", body, Idempotency_Key="one").json()["ref"] == "keyed.1"
    assert service.ok("POST", "/jobs", body)["ref"] == "keyed.2"


def test_a_stream_goes_on_after_its_last_event(service):
    ref = service.ok("POST", "/jobs", {"text": job("resumed", "i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); [ $((i % 40)) = 0 ] && sleep 0.1; done")})["ref"]
    seen, last = [], None
    while True:
        stream = service.stream(f"/jobs/{ref}/logs", **({"Last-Event-ID": last} if last else {}))
        count = 0
        for id, name, data in stream.events():
            if name == "end":
                break
            assert name == "line", name
            seen.append(data["text"])
            last, count = id, count + 1
            # As a connection that breaks.
            if count == 70:
                name = "broken"
                break
        stream.close()
        if name == "end":
            break
    assert seen == [f"line {number}" for number in range(400)]
    stream = service.stream(f"/jobs/{ref}/events")
    events = stream.until_end()
    later = service.stream(f"/jobs/{ref}/events", **{"Last-Event-ID": events[2][0]})
    assert later.until_end() == events[3:]


def test_two_followers_share_one_process(service):
    ref = service.ok("POST", "/jobs", {"text": job("shared", "sleep 600")})["ref"]
    service.until(ref, "running")
    streams = [service.stream(f"/jobs/{ref}/logs") for _ in range(20)]
    time.sleep(1)
    listed = subprocess.run(["ps", "-eo", "ppid,args"], capture_output=True, text=True, check=True).stdout
    own = [line for line in listed.splitlines() if line.split()[0] == str(service.process.pid) and "logs" in line and "--follow" in line]
    assert len(own) == 1, listed
    for stream in streams:
        stream.close()
    service.ok("POST", f"/jobs/{ref}/kill")
    deadline = time.monotonic() + 30
    while "--follow" in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout:
        assert time.monotonic() < deadline, "it outlives its followers"
        time.sleep(0.2)


def test_upload(service):
    files = {"code/main.py": b"print('uploaded')\n", "run.sh": b"#!/bin/sh\necho ran\n", "twice": b"print('uploaded')\n"}
    manifest = {"files": [{"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "mode": 0o755 if path.endswith(".sh") else 0o644} for path, data in files.items()]}
    upload = service.ok("POST", "/uploads", manifest)
    assert len(upload["missing"]) == 2, "by content"
    text = "version: 1\nname: uploaded\nimage: host\ndata: {code: {source: ./, mount: /mnt}}\nroles: {main: {shell: sh, run: '/mnt/run.sh; cat /mnt/code/main.py'}}\n"
    assert service.call("POST", "/jobs", {"text": text, "upload": upload["id"]}).status == 409, "contents are missing"
    for data in set(files.values()):
        service.ok("PUT", f"/uploads/blobs/{hashlib.sha256(data).hexdigest()}", data)
    assert service.ok("POST", "/uploads", manifest) == {"id": upload["id"], "missing": []}
    ref = service.ok("POST", "/jobs", {"text": text, "upload": upload["id"]})["ref"]
    assert service.until(ref, "succeeded", "failed")["state"] == "succeeded"
    assert [line["text"] for line in service.ok("GET", f"/jobs/{ref}/logs")["lines"]] == ["ran", "print('uploaded')"]
    assert service.call("POST", "/jobs", {"text": text, "upload": "0" * 64}).status == 404
    rerun = service.ok("POST", f"/jobs/{ref}/rerun", {"confirm": True})
    assert service.until(rerun["ref"], "succeeded", "failed")["state"] == "succeeded"


def test_run_again_shows_the_difference_first(service):
    text = "version: 1\nname: again\nparams: {n: 1}\nimage: host\nroles: {main: {run: 'echo ${{ params.n }}'}}\n"
    ref = service.ok("POST", "/jobs", {"text": text, "set": {"n": 5}})["ref"]
    service.until(ref, "succeeded")
    shown = service.ok("POST", f"/jobs/{ref}/rerun", {"text": text.replace("echo", "printf")})
    assert "printf" in json.dumps(shown["diff"]["fields"]) and shown["set"] == {"n": "5"}
    assert service.call("GET", "/jobs/again.2").status == 404, "nothing was started"
    next = service.ok("POST", f"/jobs/{ref}/rerun", {"confirm": True})["ref"]
    service.until(next, "succeeded")
    assert service.ok("GET", f"/jobs/{next}/logs")["lines"][0]["text"] == "5"
    (service.directory / "elsewhere").mkdir()
    (service.directory / "elsewhere/job.yaml").write_text(text)
    outside = service.jobc("run", "--detach", "../elsewhere/job.yaml").stdout.strip()
    answer = service.call("POST", f"/jobs/{outside}/rerun", {"confirm": True})
    assert answer.status == 403 and "--root" in answer.text


def test_sweep(service):
    text = ("version: 1\nname: swept\nimage: host\nmatrix: {lr: [1, 2]}\nmetrics: {loss: {log: 'loss=([0-9.]+)', better: lower}, seen: {log: 'seen=([0-9]+)'}}\n"
            "roles: {main: {shell: sh, run: 'echo loss=${{ matrix.lr }} seen=3'}}\n")
    ref = service.ok("POST", "/jobs", {"text": text})["ref"]
    for name in ("swept-0.1", "swept-1.1"):
        service.until(name, "succeeded")
    found = service.ok("GET", f"/sweeps/{ref}")
    assert [(job["values"], job["metrics"]["loss"]) for job in found["jobs"]] == [({"lr": 1}, 1), ({"lr": 2}, 2)]
    assert found["better"] == {"loss": "lower"} and service.ok("GET", f"/jobs/{ref}") == found
    assert len(service.ok("GET", f"/jobs?sweep={ref}")["jobs"]) == 2
    # A job of it that runs again takes its place in the same sweep; the others do not run again.
    text = text.replace("echo", "sleep 2; echo")
    again = service.call("POST", "/jobs/swept-1.1/rerun", {"text": text, "confirm": True}, Idempotency_Key="again")
    assert (again.status, again.json()["ref"]) == (201, ref), again.text
    assert service.call("POST", "/jobs/swept-1.1/rerun", {"text": text, "confirm": True}, Idempotency_Key="again").json()["created"] is False
    assert service.call("POST", "/jobs/swept-1.2/rerun", {"confirm": True}).status == 409, "it has not ended"
    service.until("swept-1.2", "succeeded")
    assert [job["id"] for job in service.ok("GET", f"/sweeps/{ref}")["jobs"]] == ["swept-0.1", "swept-1.2"]
    assert service.call("GET", "/jobs/swept-0.2").status == 404


def test_host(service):
    assert service.ok("GET", "/places")["places"][0]["name"] == "local"
    assert service.ok("GET", "/gpus")["waiting"] == []
    assert isinstance(service.ok("GET", "/images"), list)
    names = [template["name"] for template in service.ok("GET", "/templates")["templates"]]
    assert "hello-cpu" in names and "std/torchrun" in names
    found = service.ok("GET", "/templates/std%2Ftorchrun")
    assert found["text"].startswith("version: 1") or "uses" in found["text"]
    assert [file["path"] for file in found["files"]] == ["code/train.py"] and found["params"][0]["name"] == "script"
    assert service.call("GET", "/templates/missing").status == 404
    assert service.ok("GET", "/places/local")["name"] == "local"
    assert service.ok("GET", "/doctor")["checks"]


def websocket(service, path):
    client = needs.package("websockets.sync.client", "websockets")
    return client.connect(f"ws://127.0.0.1:{service.port}/api/v1{path}", additional_headers={"Authorization": f"Bearer {service.token}"}, max_size=None)


def test_terminal_in_a_task(service):
    ref = service.ok("POST", "/jobs", {"text": job("shell", "sleep 600")})["ref"]
    service.until(ref, "running")
    with websocket(service, f"/jobs/{ref}/exec") as socket:
        socket.send(json.dumps({"resize": [100, 40]}))
        socket.send(b"stty size; tty; echo s\xc3\xbcd; exit 7\n")
        output, end = b"", None
        for message in socket:
            if isinstance(message, bytes):
                output += message
            else:
                end = json.loads(message)
    assert end == {"exit": 7}, output
    assert b"40 100" in output and b"/dev/pts/" in output and "süd".encode() in output, output
    with websocket(service, f"/jobs/{ref}/exec?command=sleep%20300") as socket:
        time.sleep(0.5)
    deadline = time.monotonic() + 10
    while "sleep 300" in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout:
        assert time.monotonic() < deadline, "a command outlives its connection"
        time.sleep(0.1)
    lines = [(line["action"], line.get("about")) for line in service.audit()]
    assert ("exec", f"{ref} : a shell") in lines and ("exec", f"{ref} : sleep 300") in lines
    service.ok("POST", f"/jobs/{ref}/kill")


def test_language_server(service):
    with websocket(service, "/language") as socket:
        socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None, "rootUri": None}}))
        assert "capabilities" in json.loads(socket.recv(10))["result"]
        socket.send(json.dumps({"jsonrpc": "2.0", "method": "initialized", "params": {}}))
        text = "version: 1\nname: x\nroles: {a: {imag: b}}\n"
        document = {"uri": "file:///job.yaml", "languageId": "jobc", "version": 1, "text": text}
        socket.send(json.dumps({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}))
        while True:
            message = json.loads(socket.recv(10))
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["diagnostics"]:
                break
        assert any("imag" in finding["message"] for finding in message["params"]["diagnostics"])
        secret = service.directory / "hidden.yaml"
        secret.write_text("hunter2: 1\n")
        text = f"version: 1\nname: x\nroles: {{a: {{uses: {secret}}}}}\n"
        socket.send(json.dumps({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {"textDocument": document | {"version": 2}, "contentChanges": [{"text": text}]}}))
        assert "hunter2" not in socket.recv(10)
