use clap::{Args as _, FromArgMatches as _};
use jobc_compiler::parse::parse;
use jobc_compiler::source::{Source, Sources};

use super::*;

fn parsed(words: &[&str]) -> std::result::Result<RunArgs, clap::Error> {
    let command = RunArgs::augment_args(clap::Command::new("run"));
    let matches = command.try_get_matches_from([&["run"], words].concat())?;
    RunArgs::from_arg_matches(&matches)
}

fn args(words: &[&str]) -> RunArgs {
    parsed(words).expect("valid arguments")
}

fn job_file(args: &RunArgs, caller: &Caller) -> String {
    super::job_file(args, caller).expect("a job file")
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

fn caller(variables: &[(&str, &str)]) -> Caller {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    Caller { directory: Some("/home/ada".into()), variables }
}

#[test]
fn a_plain_command_becomes_a_job_file() {
    let mut args = args(&["--shm", "1GiB", "--", "python", "train.py", "--lr=1e-3"]);
    insta::assert_snapshot!(job_file(&args, &caller(&[])));
    args.command.name = Some("other".to_owned());
    assert!(job_file(&args, &caller(&[])).contains("\nname: other\n"));
}

#[test]
fn every_option_sets_its_field() {
    let mut args = args(&words(
        "--gpus 2 --cpus 1.5 --memory 16GiB --shm 8GiB --timeout 2h -e HF_* --env LR=1e-3 --env KEY -- bash -c",
    ));
    args.command.command.push("echo ${{ x }} $HOME\nls".to_owned());
    insta::assert_snapshot!(job_file(&args, &caller(&[("CONDA_PREFIX", "/usr")])));
}

/// The line of `docker run` is that of `jobc run --image`, with `--` before the command.
#[test]
fn docker_run_options_are_accepted() {
    let args = args(&words(
        "--rm -it --gpus 1 -v /tmp:/data:ro -v /usr:/in -e LR=1e-3 -e KEY -e MY_TOKEN -p 8888:8888 --shm-size 8g -m 16g \
         --cpus 4 -w /data -u 1000:1000 --ulimit memlock=-1 --cap-add SYS_PTRACE --device-read-bps /dev/vda:1mb \
         --device-write-iops /dev/vda:100 --image nvcr.io/nvidia/pytorch:24.05-py3 \
         -- python train.py",
    ));
    assert_eq!((args.terminal.as_deref(), args.interactive), (Some(""), true));
    let caller = caller(&[("KEY", "k"), ("MY_TOKEN", "secret-value"), ("HOME", "/home/ada")]);
    insta::assert_snapshot!(job_file(&args, &caller));
}

#[test]
fn the_command_of_an_image_is_optional() {
    let none = caller(&[]);
    let file = |words: &[&str]| job_file(&args(words), &none);
    let text = file(&["--image", "quay.io/jupyter/base-notebook:x"]);
    assert!(text.contains("\nname: base-notebook\n") && text.ends_with("roles:\n  main: {}\n"), "{text}");
    // As by `docker run`, an entry point stays, and `--entrypoint` replaces it.
    assert!(file(&["--image", "a", "--", "x"]).contains("    args:\n    - x\n"));
    assert!(
        file(&["--image", "a", "--entrypoint", "sh", "--", "-c", "x"])
            .contains("    run:\n    - sh\n    - -c\n")
    );
    assert!(file(&["--image", "a", "--entrypoint", "", "--", "x"]).contains("    run:\n    - x\n"));
    // The host's files and a directory have none.
    assert!(file(&["--image", "/tmp", "--", "x"]).contains("    run:\n    - x\n"));
    assert!(file(&["--image", "a", "--root", "host", "--", "x"]).contains("    run:\n    - x\n"));
}

#[test]
fn unsupported_docker_options_are_rejected() {
    let none = caller(&[]);
    for (line, why) in [
        ("--ipc host --image a -- x", "write `--shm-size SIZE`"),
        ("--device-write-bps vda:1mb -- x", "write the path of a device and a rate"),
        ("--device-read-iops /dev/vda:1mb -- x", "`1mb` is not a number of operations per second"),
        ("--blkio-weight 300 -- x", "write `cgroup: {io_weight: N}` of a target"),
        ("--runtime nvidia --image a -- x", "write `--gpus N`"),
        ("--restart always --image a -- x", "write `retry: {max: N}`"),
        ("--network shared --image a -- x", "networks that several jobs share"),
        ("-v data:/data --image a -- x", "named volume"),
        ("-v job.yaml", "`--verbose` prints"),
    ] {
        let error = parsed(&words(line)).expect_err(line).to_string();
        assert!(error.contains(why), "{line}: {error}");
    }
    for (line, why) in [
        ("-p 8080:main-0:http --image a -- x", "a command has no named ports"),
        ("-p 53:53/udp --image a -- x", "a command has no named ports"),
        ("-p 80:80 --network host --image a -- x", "`--publish` does not apply to `--network host`"),
        ("-e ABSENT --image a -- x", "`ABSENT` is not set"),
    ] {
        let error = super::job_file(&args(&words(line)), &none).expect_err(line).to_string();
        assert!(error.contains(why), "{line}: {error}");
    }
}

#[test]
fn expressions_are_words_of_the_command() {
    for word in ["${{ params.x }}", "a${{", "${{ '}}' }}", "$${{{ x"] {
        let text = job_file(&args(&["--", "echo", word]), &caller(&[]));
        let mut sources = Sources::new();
        let id = sources.add(Source::new(COMMAND, text));
        let document = parse(&sources, id, &mut jobc_compiler::diagnostic::Sink::new()).expect("YAML");
        let run = document.to_json()["roles"]["main"]["run"][1].as_str().expect("a word").to_owned();
        assert_eq!(run.replace("${{ '$' }}", "$"), word);
        let parts = jobc_compiler::expression::split(&run).expect("closed expressions");
        assert!(parts.len() >= 2, "{parts:?}");
    }
}

#[test]
fn shm_is_no_more_than_memory() {
    let shm = |words: &[&str], host| resources(&args(words).command, host)["shm"].clone();
    assert_eq!(shm(&["--", "x"], Some(Bytes(1 << 30))), json!("1GiB"));
    assert_eq!(shm(&["--memory", "500MB", "--", "x"], Some(Bytes(1 << 30))), json!("500MB"));
    assert_eq!(shm(&["--memory", "500GB", "--", "x"], Some(Bytes(1 << 30))), json!("1GiB"));
    assert_eq!(shm(&["--shm", "2GiB", "--memory", "1GiB", "--", "x"], None), json!("2GiB"));
    assert_eq!(resources(&args(&["--", "x"]).command, None), json!({}));
}

#[test]
fn job_name_is_derived_from_the_command() {
    let name = |command: &str| job_name(&command.split(' ').map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(name("python train.py"), "train");
    assert_eq!(name("torchrun --nproc-per-node 2 src/Train_GPT.py --lr 1"), "train-gpt");
    assert_eq!(name("./run.sh"), "run");
    assert_eq!(name("/usr/bin/make all"), "make");
    assert_eq!(name("訓練"), "command");
    assert_eq!(name("3d.py"), "3d");
    assert_eq!(name(&format!("{}-b", "a".repeat(39))), "a".repeat(39));
}

#[test]
fn a_file_is_not_overwritten() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = Utf8Path::from_path(directory.path()).expect("UTF-8").join("job.yaml");
    save("a", &path).expect("a new file");
    let error = save("b", &path).expect_err("it exists");
    assert!(error.to_string().ends_with("job.yaml`: file exists"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "a");
    assert!(save("b", Utf8Path::new("/nonexistent/job.yaml")).is_err());
}

#[test]
fn files_below_tmp_that_the_command_does_not_see_are_named() {
    let check = |words: &[&str], directory: &str| {
        let caller = Caller { directory: Some(directory.into()), ..caller(&[("VIRTUAL_ENV", "/tmp/venv")]) };
        let exists = |path: &Path| !path.ends_with("absent");
        hidden_paths::note(&args(words), &caller, exists).unwrap_or_default()
    };
    insta::assert_snapshot!(check(&["--", "cat", "/tmp/in/a.txt"], "/home/ada"), @"jobc: note: the command does not see `/tmp/in/a.txt`: it has its own /tmp; to mount it, add `-v /tmp/in:/tmp/in:ro` before `--`");
    insta::assert_snapshot!(check(&["--", "python", "../t.py"], "/tmp/a/b"), @"jobc: note: the command does not see `/tmp/a/t.py`: it has its own /tmp; to mount it, add `-v /tmp/a:/tmp/a:ro` before `--`");
    insta::assert_snapshot!(check(&["--", "cat", "--in=/tmp/a.txt"], "/home/ada"), @"jobc: note: the command does not see `/tmp/a.txt`: it has its own /tmp; to mount it, add `-v /tmp/a.txt:/tmp/a.txt:ro` before `--`");
    for (line, directory) in [
        ("-- cat /tmp/absent", "/home/ada"),
        ("-- ls /tmp", "/home/ada"),
        ("-- cat a.txt", "/tmp/a"),
        ("-- /tmp/venv/bin/python", "/home/ada"),
        ("-v /tmp:/tmp -- cat /tmp/in/a.txt", "/home/ada"),
        ("--image python:3.12-slim -- cat /tmp/in/a.txt", "/home/ada"),
    ] {
        assert_eq!(check(&words(line), directory), "", "{line}");
    }
}
