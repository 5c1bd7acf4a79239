use super::*;

/// The type of a directory with these files, and of each file when it is named.
#[test]
fn input_type_is_detected_from_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let job = |name: &str| RunInput::Job(Some(Utf8PathBuf::from_path_buf(at(name)).unwrap()));
    for (directory, file) in
        [("bundle", "config.json"), ("plan", "plan.json"), ("job", "job.yml"), ("none", "a.txt")]
    {
        std::fs::create_dir(at(directory)).unwrap();
        std::fs::write(at(directory).join(file), "").unwrap();
    }
    let of = |name: &str| RunInput::of(Some(&at(name))).unwrap();
    let plan = |name: &str| RunInput::Plan(Utf8PathBuf::from_path_buf(at(name)).unwrap());
    assert_eq!(of("bundle"), RunInput::Bundle(at("bundle")));
    assert_eq!(of("plan"), plan("plan"));
    assert_eq!(of("plan/plan.json"), plan("plan/"));
    assert_eq!(of("job"), job("job"));
    assert_eq!(of("none/a.txt"), job("none/a.txt"));
    // The bundle reader reports why it is not a bundle.
    assert_eq!(of("none"), RunInput::Bundle(at("none")));
    let error = RunInput::of(Some(&at("absent"))).unwrap_err().to_string();
    assert!(error.ends_with("absent`: no such file or directory (ENOENT)"), "{error}");
    std::fs::write(at("train.py"), "").unwrap();
    let error = RunInput::of(Some(&at("train.py"))).unwrap_err();
    assert!(error.message().ends_with("train.py` is a program, not a job file"), "{}", error.message());
    let help = error.advice().unwrap();
    assert!(help.starts_with("write a command after `--`: `jobc run -- python3 /"), "{help}");
    assert_eq!(RunInput::of(None).unwrap(), RunInput::Job(None));
    assert_eq!(RunInput::of(Some(Path::new("-"))).unwrap(), RunInput::Job(Some("-".into())));
    // A bundle next to a job file is a bundle.
    std::fs::write(at("bundle").join("job.yaml"), "").unwrap();
    assert_eq!(of("bundle"), RunInput::Bundle(at("bundle")));
}

#[test]
fn nv_gpu_is_reported_with_the_option_to_use() {
    use clap::{Args as _, FromArgMatches as _};
    let note = |line: &str, value: Option<&str>| {
        let command = RunArgs::augment_args(clap::Command::new("run"));
        let words = line.split_whitespace();
        let matches =
            command.try_get_matches_from(std::iter::once("run").chain(words)).expect("valid arguments");
        nv_gpu_note(&RunArgs::from_arg_matches(&matches).expect("valid arguments"), value)
    };
    let says = |note: Option<String>, part: &str| {
        let note = note.expect("a note");
        assert!(note.contains(part), "{note}");
    };
    says(note("job.yaml", Some("1")), "write `--devices 1`");
    says(note("-- nvidia-smi", Some("0, 1")), "write `--gpus device=0,1`");
    assert_eq!(note("--gpus 1 -- nvidia-smi", Some("1")), None);
    assert_eq!(note("job.yaml --devices 1", Some("1")), None);
    assert_eq!(note("job.yaml", Some("")), None);
    assert_eq!(note("job.yaml", None), None);
}
