//! `jobc run` of one bundle: what it refuses, what it shows, signals and terminals.

use serde_json::json;
use snapbox::assert_data_eq;
use snapbox::str;

use crate::directory::{Directory, HELLO, Run, binary, command};
use crate::runtime::oci::bundle;

#[test]
fn directories_that_are_not_bundles_are_rejected() {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["build", "--target", "local"]).exits(0);
    directory
        .jobc(&["run", "absent"])
        .exits(125)
        .says("cannot open `absent`: no such file or directory (ENOENT)");
    directory.jobc(&["run", "out"]).exits(125).says("a bundle is a directory with a config.json");
    directory
        .jobc(&["run", "out/hello/local/oci/main-0"])
        .exits(125)
        .says("a single bundle is not unpacked from its image `busybox:1.36`");
    directory
        .jobc(&["run", "--detach", "out/hello/local/oci/main-0"])
        .exits(125)
        .says("`--detach` does not apply to a bundle");
    directory
        .jobc(&["run", "--id", "a/b", "out/hello/local/oci/main-0"])
        .exits(125)
        .says("has the character `/`");
    let help = directory.jobc(&["run", "--help"]).exits(0).out;
    assert!(help.contains("--oci-runtime") && help.contains("Usage: jobc run"), "{help}");
}

#[test]
fn an_unknown_property_is_refused() {
    let Some(directory) = bundle("true", |config| {
        config["extra"] = json!(1);
        config["linux"]["memorySize"] = json!("1G");
    }) else {
        return;
    };
    let run = directory.jobc(&["run", "."]).exits(125);
    assert_data_eq!(
        run.err,
        str![[r#"
error: config.json: /linux/memorySize: unknown property, and 1 more
 = help: remove it; `jobc oci run` ignores it, as the OCI runtime specification requires

"#]]
    );
}

#[test]
fn options_that_would_be_ignored_are_rejected() {
    let Some(directory) = bundle("true", |_| {}) else { return };
    let by_runc: &[&str] = &["--oci-runtime", "runc"];
    for (others, options, why) in [
        (&[][..], &["--pull", "missing"][..], "`--pull` does not apply to a bundle"),
        (&[], &["--image-root", "images"], "`--image-root` does not apply to a bundle"),
        (&[], &["--gpu-share", "mps"], "`--gpu-share` does not apply to a bundle"),
        (&[], &["--gpu-injection", "auto"], "`--gpu-injection` does not apply to a bundle without GPUs"),
        (by_runc, &["--gpu-injection", "cdi"], "`--gpu-injection` does not apply to a bundle without GPUs"),
        (by_runc, &["--allow-unenforced"], "`--allow-unenforced` does not apply to a bundle that another"),
        (by_runc, &["--keep"], "`--keep` does not apply to a bundle that another runtime runs"),
        (&[], &["--format", "json"], "`--format` does not apply to a bundle"),
        (&[], &["--format", "sarif"], "`--format` does not apply to a bundle"),
    ] {
        let words = [&["run", "--dry-run"], others, options, &["."]].concat();
        directory.jobc(&words).exits(125).says(why);
    }
    directory.jobc(&["run", "--format", "text", "--allow-unenforced", "."]).exits(0);
    // The variable is for all commands, not for this one.
    Run::of(directory.command(binary()).args(["run", "."]).env("JOBC_IMAGE_ROOT", "images")).exits(0);
}

#[test]
fn a_dry_run_shows_the_steps_and_does_nothing() {
    let Some(directory) = bundle("touch /tmp/done", |config| {
        config["hostname"] = json!("task-0");
        config["annotations"]["dev.jobc.user"] = json!("root");
    }) else {
        return;
    };
    let id = format!("dry-{}", std::process::id());
    let run = directory.jobc(&["run", "--dry-run", "--id", &id, "."]).exits(0);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines[0], "root: / under a writable layer in memory");
    assert!(lines[1].starts_with("user: root is 0:0"), "{}", run.out);
    assert!(run.out.contains("  set the host name to `task-0`  [/hostname]\n"), "{}", run.out);
    assert!(
        lines.last().unwrap().ends_with("  execute /bin/sh -c 'touch /tmp/done'  [/process/args]"),
        "{}",
        run.out
    );
    assert_eq!(run.err, "");
    assert_eq!(directory.jobc(&["oci", "list", "--quiet"]).out.matches(&id).count(), 0);
    let run = directory.jobc(&["run", "--dry-run", "--root", "/tmp/..", "."]).exits(125);
    assert!(run.err.contains("use `host`"), "{}", run.err);
}

#[test]
fn another_runtime_runs_the_same_copy() {
    let Some(directory) = bundle("echo ran; exit 6", |_| {}) else { return };
    directory.write("runtime", "#!/bin/sh\necho \"$1\" \"$2\" \"${4%-*}\"; grep -o '\"path\":\"[^\"]*rootfs\"' \"$3/config.json\"; exit 7\n");
    directory.bash("chmod +x runtime; mkdir rootfs").exits(0);
    let id = format!("task-{}", std::process::id());
    let run =
        directory.jobc(&["run", "--oci-runtime", "./runtime", "--root", "rootfs", "--id", &id, "."]).exits(7);
    assert_eq!(run.out, format!("run --bundle task\n\"path\":\"{}/rootfs\"\n", directory.path()));
    directory
        .jobc(&["run", "--oci-runtime", "./runtime", "--root", "host", "."])
        .exits(125)
        .says("writable layer");
    let absent = directory.jobc(&["run", "--oci-runtime", "youki-not-here", "--root", "rootfs", "."]);
    absent.exits(125).says("cannot execute the runtime `youki-not-here`");
    let dry =
        directory.jobc(&["run", "--dry-run", "--oci-runtime", "crun", "--root", "rootfs", "."]).exits(0);
    assert!(dry.out.contains("\ncrun --root "), "{}", dry.out);
}

/// A program without a handler ends by a signal, although the kernel would ignore it for the first process of a
/// namespace; one with a handler gets it; one that ignores it is killed by repeating.
#[test]
fn signals_act_as_on_a_plain_command() {
    let send = |script: &str, signals: &str| {
        let directory = bundle(script, |_| {})?;
        Some(directory.bash(&format!(
            "set -m; \"$JOBC\" run . </dev/null >out & run=$!
            for i in $(seq 400); do grep -q ready out && break; sleep 0.02; done
            for signal in {signals}; do kill -$signal $run; sleep 0.1; done
            {{ sleep 20; kill -KILL $run; }} >/dev/null 2>&1 & watchdog=$!
            wait $run; code=$?; kill $watchdog; exit $code"
        )))
    };
    let ready = "echo ready; exec sleep 1000";
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129), ("USR1", 138)] {
        let Some(run) = send(ready, signal) else { return };
        let run = run.exits(code);
        assert!(!run.err.contains("error"), "{signal}: {}", run.err);
    }
    let catches = "trap 'exit 4' TERM; trap 'exit 5' USR1; echo ready; while :; do sleep 0.02; done";
    for (signal, code) in [("TERM", 4), ("USR1", 5)] {
        let Some(run) = send(catches, signal) else { return };
        run.exits(code);
    }
    // It may ignore signals, but not the third in a row.
    let deaf = "trap '' TERM INT; echo ready; while :; do sleep 0.02; done";
    let Some(run) = send(deaf, "TERM INT TERM") else { return };
    run.exits(137);
    // WINCH does not end a program.
    let Some(run) = send("echo ready; sleep 1; exit 3", "WINCH") else { return };
    run.exits(3);
}

#[test]
fn a_killed_jobc_takes_its_container_along() {
    let Some(directory) = bundle(&format!("echo ready; exec sleep 7{:07}", std::process::id()), |_| {})
    else {
        return;
    };
    let run = directory.bash(
        "N=$(grep -o 'sleep 7[0-9]*' config.json | cut -c8-); set -m; \"$JOBC\" run --id killed-$$ . </dev/null >out 2>&1 & run=$!
        for i in $(seq 400); do grep -q ready out && break; sleep 0.02; done
        kill -KILL $run; wait $run; echo $?
        for i in $(seq 100); do pgrep -f sleep.[7]$N >/dev/null || break; sleep 0.05; done
        pgrep -f sleep.[7]$N; \"$JOBC\" oci delete killed-$$; echo $?; \"$JOBC\" oci delete --force killed-$$",
    );
    assert_eq!(run.out, "137\n0\n", "{}", run.err);
}

/// A killed command cannot remove its container, so the next one with the name does; not one that was kept.
#[test]
fn the_name_of_a_killed_command_is_free() {
    let Some(directory) = bundle("echo ready; exec sleep 60", |_| {}) else { return };
    let run = directory.bash(
        "set -m; \"$JOBC\" run --id again-$$ . </dev/null >out 2>&1 & run=$!
        for i in $(seq 400); do grep -q ready out && break; sleep 0.02; done
        \"$JOBC\" run --id again-$$ . 2>&1 | grep -c 'already exists'
        kill -KILL $run; wait $run
        sed -i 's/exec sleep/exit 4; exec sleep/' config.json
        for i in $(seq 100); do \"$JOBC\" oci state again-$$ | grep -q stopped && break; sleep 0.05; done
        \"$JOBC\" run --id again-$$ . </dev/null; echo $?
        \"$JOBC\" run --keep --id again-$$ . </dev/null; echo $?
        \"$JOBC\" run --id again-$$ . 2>&1 | grep -c 'already exists'
        \"$JOBC\" oci delete again-$$",
    );
    assert_eq!(run.out, "1\nready\n4\nready\n4\n1\n", "{}", run.err);
}

#[test]
fn a_terminal_is_allocated_and_restored() {
    if !command("script").arg("--version").output().is_ok_and(|output| output.status.success()) {
        jobc_test_skip::skip("script");
        return;
    }
    let Some(directory) =
        bundle("tty; stty size; exit 8", |config| config["process"]["terminal"] = json!(true))
    else {
        return;
    };
    let line = "stty rows 33 cols 77; \"$JOBC\" run .; echo code $?; stty -a | grep -o ' [-]*icanon'";
    let run =
        Run::of(directory.command("script").args(["-qec", line, "/dev/null"]).env("JOBC", binary())).exits(0);
    let out = run.out.replace('\r', "");
    assert_eq!(out, "/dev/pts/0\n33 77\ncode 8\n icanon\n");
    // Without a terminal of ours there is still one inside, and the end of our input ends what reads it.
    let run = directory.bash("echo 'ignored' | \"$JOBC\" run . | cat; echo ${PIPESTATUS[1]}");
    assert!(run.out.contains("/dev/pts/0") && run.out.ends_with("8\n"), "{}", run.out);
    let Some(directory) = bundle("cat; exit 2", |config| config["process"]["terminal"] = json!(true)) else {
        return;
    };
    let run = directory.bash("printf 'a line\\nrest' | \"$JOBC\" run . | tail -1; echo ${PIPESTATUS[1]}");
    assert!(run.out.contains("rest") && run.out.ends_with("2\n"), "{}", run.out);
}

#[test]
fn input_and_output_pipes_are_passed_through() {
    let Some(directory) = bundle("cat; echo done >&2", |_| {}) else { return };
    let run = directory.bash("seq 100000 | \"$JOBC\" run . | tail -1; echo ${PIPESTATUS[1]}").exits(0);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("100000\n0\n", "done\n"));
    // Without a reader, the program gets the same error as without jobc.
    let Some(directory) = bundle("exec yes", |_| {}) else { return };
    let run = directory.bash("\"$JOBC\" run . </dev/null | head -1; echo ${PIPESTATUS[0]}").exits(0);
    assert_eq!(run.out, "y\n1\n", "the kernel spares it the signal, as the first of its namespace");
    let Some(directory) = bundle("cat; echo fine", |_| {}) else { return };
    assert_eq!(directory.bash("\"$JOBC\" run . <&-").exits(0).out, "fine\n");
}

#[test]
fn a_signal_ends_the_unpacking_too() {
    let Some(directory) = bundle("echo ran", |_| {}) else { return };
    // Many small files take long.
    let run = directory.bash(
        "set -m; seq 100000 >files; mkdir tree; (cd tree && xargs touch <../files)
        tar -C tree -cf rootfs.tar . && rm -r tree
        id=unpack-$$; \"$JOBC\" run --id $id . </dev/null & run=$!
        for i in $(seq 400); do [ -n \"$(ls /run/jobc/containers/$id 2>/dev/null)\" ] && break; sleep 0.01; done
        kill -INT $run; wait $run; echo $?; ls -d /run/jobc/containers/$id",
    );
    assert_eq!(run.out, "130\n", "{}", run.err);
}
