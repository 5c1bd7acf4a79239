//! Backends that are plug-ins: programs and templates, good ones and bad ones.

use std::os::unix::fs::PermissionsExt as _;

use crate::directory::{Directory, HELLO, Run};

const TARGETS: &str = "version: 1\ntargets:\n  lab: {backends: [demo], plugins: {demo: {color: red}}}\n";
/// A plug-in that answers to `describe`, and to `lower` with what is inserted.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import json, os, socket, sys, time
request = json.load(sys.stdin)
answer = {"contract": 1}
if request["operation"] == "describe":
    answer |= {"about": "a demo", "expresses": ["no cpu stated", "no memory stated", "gpu: 0"], "lossy": {"shm": "it rounds"}}
else:
    LOWER
json.dump(answer, sys.stdout)
"#;

/// A job, and the plug-in `demo` on PATH.
fn with_program(text: &str) -> Directory {
    let directory = Directory::with_job(&HELLO.replace("cpu: 1, ", ""));
    directory.write("targets.yaml", TARGETS);
    directory.write("bin/jobc-backend-demo", text);
    let path = directory.path().join("bin/jobc-backend-demo");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

fn lowering(lower: &str) -> Directory {
    with_program(&PROGRAM.replace("LOWER", lower))
}

fn jobc(directory: &Directory, arguments: &[&str]) -> Run {
    let path = format!("{}:{}", directory.path().join("bin"), std::env::var("PATH").unwrap());
    Run::of(
        directory
            .command(crate::directory::binary())
            .args(arguments)
            .env("PATH", path)
            .env("JOBC_PLUGIN_TIMEOUT", "3"),
    )
}

#[test]
fn a_program_writes_files() {
    if !jobc_test_skip::has_program("python3") {
        return;
    }
    let directory = lowering(
        r#"answer["files"] = [
        {"path": "a/b.yaml", "yaml": {"name": request["plan"]["name"], "color": request["settings"].get("color"), "way": request["to_job"]}, "origins": [{"pointer": "/name", "spec": "/name"}]},
        {"path": "run.sh", "text": "exit\n", "executable": True}]"#,
    );
    jobc(&directory, &["build"]).exits(0);
    assert_eq!(directory.read("out/hello/lab/demo/a/b.yaml"), "name: hello\ncolor: red\nway: ../../../..\n");
    let mode = directory.path().join("out/hello/lab/demo/run.sh").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    let run = jobc(&directory, &["why", "out/hello/lab/demo/a/b.yaml:1"]).exits(0);
    assert!(run.out.contains("`name` at job.yaml:2"), "{}", run.out);
    let run = jobc(&directory, &["backend", "test", "demo"]).exits(0);
    assert_eq!(
        run.out,
        "demo: a demo; 3 features, 1 in part\n4 jobs written, 105 refused by the manifest, 0 failed\n"
    );
}

#[test]
fn unsupported_features_of_a_plug_in_are_errors_at_their_lines() {
    if !jobc_test_skip::has_program("python3") {
        return;
    }
    let directory = lowering("answer['files'] = []");
    let job = HELLO.replace("cpu: 1, ", "pids: 10, ");
    directory.write("job.yaml", &job);
    jobc(&directory, &["build"]).exits(1).says("backend `demo` cannot express").says("does not list `pids`");
    directory.write("job.yaml", &HELLO.replace("cpu: 1, ", "shm: 32MiB, "));
    jobc(&directory, &["build"]).exits(1).says("it rounds");
    jobc(&directory, &["build", "--allow-lossy"]).exits(0).says("it rounds");
}

#[test]
fn its_diagnostics_are_at_lines_of_the_job() {
    if !jobc_test_skip::has_program("python3") {
        return;
    }
    let directory = lowering(
        r#"answer["diagnostics"] = [{"message": "the name is too plain", "at": "/name", "help": "write `hello-2`"}, {"error": False, "message": "hm"}]"#,
    );
    jobc(&directory, &["build"])
        .exits(1)
        .says("error[J0482]: the name is too plain")
        .says("job.yaml:2:7")
        .says("write `hello-2`");
}

#[test]
fn bad_programs_are_clear_errors() {
    if !jobc_test_skip::has_program("python3") {
        return;
    }
    for (lower, message) in [
        ("sys.stdout.write('hello')", "its answer is not JSON"),
        ("sys.exit('no idea')", "it ended with exit code 1: no idea"),
        ("os.kill(os.getpid(), 9)", "it ended with signal: 9"),
        ("time.sleep(60)", "timed out after 3s"),
        ("answer['files'] = [{'path': 'x', 'text': 'a' * (65 << 20)}]", "its answer has more than 64 MiB"),
        ("answer['files'] = [{'path': '../x', 'text': ''}]", "`../x` is not a relative path of plain names"),
        ("answer['files'] = [{'path': '/x', 'text': ''}]", "`/x` is not a relative path"),
        ("answer['files'] = [{'path': 'x', 'text': ''}] * 2", "it writes `x` twice"),
        ("answer['files'] = [{'path': 'x'}]", "`x` must have one of `text`, `yaml` and `json`"),
        ("answer['files'] = [{'path': 'x', 'text': '', 'mode': 7}]", "unknown field `mode`"),
        ("answer['files'] = 1", "its answer is not valid"),
        ("answer['contract'] = 2", "it speaks version 2 of the contract, and this jobc version 1"),
        ("answer['diagnostics'] = [{'message': 'm', 'at': 'x'}]", "which is not a JSON Pointer"),
    ] {
        let run = jobc(&lowering(lower), &["build"]).exits(1).says(message);
        assert!(run.err.contains("targets.yaml:3:"), "{lower}: {}", run.err);
    }
}

#[test]
fn a_program_has_no_network_and_cannot_write() {
    if !jobc_test_skip::has_program("python3") {
        return;
    }
    let directory = lowering(
        r#"found = []
    for what in ("open('job.yaml', 'w')", "open(os.environ['TMPDIR'] + '/own', 'w')", "open(os.path.expanduser('~/x'), 'w')", "socket.create_connection(('192.0.2.1', 80), 1)", "os.environ['SECRET']"):
        try:
            eval(what)
            found.append("done")
        except OSError as error:
            found.append(os.strerror(error.errno))
        except KeyError:
            found.append("unset")
    answer["files"] = [{"path": "found.json", "json": found}]"#,
    );
    let path = format!("{}:{}", directory.path().join("bin"), std::env::var("PATH").unwrap());
    let mut command = directory.command(crate::directory::binary());
    let run = Run::of(command.arg("build").env("PATH", path).env("SECRET", "s"));
    if run.err.contains("cannot create a user namespace") {
        jobc_test_skip::skip("user namespaces");
        return;
    }
    run.exits(0);
    let found: Vec<String> = serde_json::from_str(&directory.read("out/hello/lab/demo/found.json")).unwrap();
    assert_eq!(
        found,
        ["Read-only file system", "done", "Read-only file system", "Network is unreachable", "unset"]
    );
}

#[test]
fn manifests_are_checked() {
    if !jobc_test_skip::has_program("python3") {
        return;
    }
    for (manifest, message) in [
        ("{'contract': 3, 'about': ''}", "it speaks version 3 of the contract"),
        (
            "{'contract': 1, 'about': '', 'expresses': ['pdis']}",
            "unknown feature `pdis`; did you mean `pids`?",
        ),
        ("{'contract': 1}", "missing field `about`"),
        ("[]", "its manifest is not valid"),
    ] {
        let program = format!(
            "#!/usr/bin/env python3\nimport json, sys\njson.load(sys.stdin)\njson.dump({manifest}, sys.stdout)\n"
        );
        jobc(&with_program(&program), &["build"]).exits(1).says(message);
        jobc(&with_program(&program), &["backend", "test", "demo"]).exits(1);
    }
}

#[test]
fn an_unknown_backend_is_an_error_at_its_line() {
    let directory = Directory::with_job(HELLO);
    directory.write("targets.yaml", &TARGETS.replace("[demo]", "[kuberntes]"));
    let run = directory
        .jobc(&["check"])
        .exits(1)
        .says("unknown backend `kuberntes`")
        .says("did you mean `kubernetes`?");
    assert!(run.err.contains("targets.yaml:3:"), "{}", run.err);
    directory.write("targets.yaml", TARGETS);
    directory.jobc(&["check"]).exits(1).says("the program `jobc-backend-demo` on PATH");
    directory.write("targets.yaml", &TARGETS.replace("[demo]", "[De_mo]"));
    directory.jobc(&["check"]).exits(1);
    directory.jobc(&["backend", "test", "demo"]).exits(2).says("unknown plug-in `demo`");
    directory.jobc(&["backend", "test", "oci"]).exits(1);
}

/// A job, and the templates `demo` next to its targets file.
fn with_templates(manifest: &str, template: &str) -> Directory {
    let directory = Directory::with_job(HELLO);
    directory.write("targets.yaml", TARGETS);
    directory.write("backends/demo/backend.yaml", manifest);
    directory.write("backends/demo/role.txt", template);
    directory
}

const MANIFEST: &str = "contract: 1\nabout: a demo\nexpresses: [no cpu stated, 'gpu: 0']\ntemplates:\n  - {template: role.txt, path: '{{ role.name }}.txt', each: role}\n";

#[test]
fn templates_write_files() {
    let directory = with_templates(
        MANIFEST,
        "{% for i in range(role.instances) %}\n{{ plan.name }} {{ i }} {{ settings.color | default('blue') | shell }}\n{% endfor %}\n",
    );
    directory.jobc(&["build"]).exits(0);
    assert_eq!(directory.read("out/hello/lab/demo/main.txt"), "hello 0 red\nhello 1 red\n");
    let run = directory.jobc(&["backend", "test", "demo"]).exits(0);
    assert_eq!(
        run.out,
        "demo: a demo; 2 features, 0 in part\n2 jobs written, 107 refused by the manifest, 0 failed\n"
    );
}

#[test]
fn bad_templates_are_clear_errors() {
    for (manifest, template, message) in [
        (MANIFEST, "{{ plan.nam }}", "template `role.txt`, line 1: undefined value"),
        (MANIFEST, "\n{% for x in %}", "template `role.txt`, line 2: syntax error"),
        (
            MANIFEST,
            "{% for x in range(9999) %}{% for y in range(9999) %}{% endfor %}{% endfor %}",
            "template `role.txt`",
        ),
        ("contract: 1\nabout: [\n", "", "backend.yaml` is not valid: backend.yaml:"),
        ("contract: 1\nabout: x\n", "", "names no `templates`"),
        (
            "contract: 1\nabout: x\ntemplates: [{template: ../../job.yaml, path: x}]\n",
            "",
            "the template `../../job.yaml` is not a file next to it",
        ),
        ("contract: 1\nabout: x\ntemplates: [{template: absent, path: x}]\n", "", "cannot read `"),
        (
            "contract: 1\nabout: x\nexpresses: [no cpu stated, 'gpu: 0']\ntemplates: [{template: role.txt, path: ../x}]\n",
            "",
            "`../x` is not a relative path",
        ),
    ] {
        with_templates(manifest, template).jobc(&["build"]).exits(1).says(message);
    }
}

#[test]
fn installed_plugins_are_listed_and_not_started() {
    let directory = with_program("#!/bin/sh\ntouch started\n");
    directory.write("bin/jobc-backend-Wrong", "");
    directory.write("backends/desk/backend.yaml", "contract: 1\n");
    let run = jobc(&directory, &["backends"]).exits(0);
    let listed = "plug-ins, described by `jobc backend test NAME`\ndemo  program ";
    assert!(run.out.contains(listed), "{}", run.out);
    assert!(run.out.ends_with("/bin/jobc-backend-demo\ndesk  templates in backends/desk\n"), "{}", run.out);
    let run = jobc(&directory, &["backends", "--format", "json"]).exits(0);
    let answer: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let kinds: Vec<_> =
        answer["plugins"].as_array().unwrap().iter().map(|it| (&it["name"], &it["kind"])).collect();
    assert_eq!(kinds, [(&"demo".into(), &"program".into()), (&"desk".into(), &"templates".into())]);
    assert!(!directory.path().join("started").exists());
}
