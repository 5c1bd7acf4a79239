use clap::{Args as _, FromArgMatches as _};
use jobc_compiler::parse::parse;
use jobc_compiler::source::{Source, Sources};

use super::*;

fn args(words: &[&str]) -> CommandArgs {
    let command = CommandArgs::augment_args(clap::Command::new("run"));
    let matches = command.try_get_matches_from([&["run"], words].concat()).expect("valid arguments");
    CommandArgs::from_arg_matches(&matches).expect("valid arguments")
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

fn caller(variables: &[(&str, &str)]) -> Caller {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    Caller { directory: Some("/home/ada".into()), variables }
}

#[test]
fn a_command_alone() {
    let mut args = args(&["--shm", "1GiB", "--", "python", "train.py", "--lr=1e-3"]);
    insta::assert_snapshot!(job_file(&args, &caller(&[])));
    args.name = Some("other".to_owned());
    assert!(job_file(&args, &caller(&[])).contains("\nname: other\n"));
}

#[test]
fn every_option() {
    let mut args = args(&words(
        "--gpus 2 --cpus 1.5 --memory 16GiB --shm 8GiB --timeout 2h -e HF_* --env LR=1e-3 --env KEY -- bash -c",
    ));
    args.command.push("echo ${{ x }} $HOME\nls".to_owned());
    insta::assert_snapshot!(job_file(&args, &caller(&[("CONDA_PREFIX", "/usr")])));
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
    let shm = |words: &[&str], host| resources(&args(words), host)["shm"].clone();
    assert_eq!(shm(&["--", "x"], Some(Bytes(1 << 30))), json!("1GiB"));
    assert_eq!(shm(&["--memory", "500MB", "--", "x"], Some(Bytes(1 << 30))), json!("500MB"));
    assert_eq!(shm(&["--memory", "500GB", "--", "x"], Some(Bytes(1 << 30))), json!("1GiB"));
    assert_eq!(shm(&["--shm", "2GiB", "--memory", "1GiB", "--", "x"], None), json!("2GiB"));
    assert_eq!(resources(&args(&["--", "x"]), None), json!({}));
}

#[test]
fn the_name_of_a_command() {
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
