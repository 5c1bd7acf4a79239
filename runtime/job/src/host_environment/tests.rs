use serde_json::json;

use super::*;

fn plan(host: &serde_json::Value) -> JobPlan {
    let mut source = host.clone();
    source["kind"] = json!("host");
    let plan = json!({
        "name": "j", "target": {"name": "local", "settings": {"backends": ["oci"]}},
        "images": {"main": {"source": source, "reference": "host", "declared_at": "/image"}},
        "roles": [], "stages": [], "network": "auto", "gang": "auto", "totals": {"instances": 0, "cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "gpu_slices": 0},
    });
    serde_json::from_value(plan).expect("a plan")
}

/// What an image gets of a caller with these variables; values that are in no file as `***`.
fn check(host: &serde_json::Value, directory: &Path, variables: &[(&str, &str)]) -> String {
    let caller = Caller {
        directory: Some(directory.to_owned()),
        variables: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
    };
    match HostEnvironments::read(&plan(host), &caller) {
        Err(error) => format!("{error}\n  {}\n", error.advice().unwrap_or_default()),
        Ok(all) => {
            let HostEnvironment { settings, mounts, variables, .. } = &all.0["main"];
            let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
            let mounts: Vec<String> = mounts
                .iter()
                .map(|mount| {
                    format!("{}{}", mount.path.display(), if mount.writable { "" } else { " (read-only)" })
                })
                .collect();
            let secrets: Vec<_> = all.secrets().map(String::from_utf8_lossy).collect();
            format!(
                "set {:?}, start in {:?}, mount {mounts:?}, pass {names:?}, redact {secrets:?}\n",
                settings.env, settings.cwd
            )
        }
    }
}

#[test]
fn nothing_is_passed_unasked() {
    let found = check(&json!({}), Path::new("/work"), &[("PATH", "/bin"), ("TOKEN", "12345678")]);
    assert_eq!(found, "set [], start in None, mount [], pass [], redact []\n");
}

#[test]
fn variables_by_name_and_by_pattern() {
    let variables = [
        ("HOME", "/home/ada"),
        ("HF_HOME", "/data/hf"),
        ("HF_TOKEN", "hf_abcdefgh"),
        ("PATH", "/opt/bin:/bin"),
        ("SSH_AUTH_SOCK", "/run/agent"),
        ("XDG_RUNTIME_DIR", "/run/user/1000"),
        ("XDG_CACHE_HOME", "/scratch"),
        ("JOBC_COLOR", "never"),
        ("CUDA_VISIBLE_DEVICES", "3"),
        ("BASH_FUNC_x%%", "() { :; }"),
    ];
    let env = |patterns: serde_json::Value| check(&json!({"env": patterns}), Path::new("/work"), &variables);
    assert_eq!(
        env(json!(["HF_*"])),
        "set [], start in None, mount [], pass [\"HF_HOME\", \"HF_TOKEN\"], redact [\"hf_abcdefgh\"]\n"
    );
    assert_eq!(
        env(json!(["SSH_AUTH_SOCK"])),
        "set [], start in None, mount [], pass [\"SSH_AUTH_SOCK\"], redact []\n"
    );
    let all = env(json!(["*"]));
    assert_eq!(
        all,
        "set [\"PATH=/opt/bin:/bin\"], start in None, mount [], pass [\"HOME\", \"HF_HOME\", \"HF_TOKEN\", \"XDG_CACHE_HOME\"], redact [\"hf_abcdefgh\"]\n"
    );
    let missing = env(json!(["HOME", "WANDB_API_KEY"]));
    assert!(
        missing.starts_with("`image.host.env`: the environment variable `WANDB_API_KEY` is not set\n"),
        "{missing}"
    );
}

#[test]
fn the_working_directory_is_mounted_where_it_is() {
    let cwd = |directory: &str| check(&json!({"cwd": true}), Path::new(directory), &[]);
    assert_eq!(
        cwd("/home/ada/train"),
        "set [], start in Some(\"/home/ada/train\"), mount [\"/home/ada/train\"], pass [], redact []\n"
    );
    for reserved in ["/", "/proc/1", "/dev/shm", "/etc"] {
        assert!(
            cwd(reserved)
                .starts_with(&format!("`image.host.cwd`: cannot mount the working directory `{reserved}`"))
        );
    }
}

#[test]
fn a_virtual_environment_comes_first_in_the_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    for name in ["project/.venv/bin", "other/bin", "conda/bin"] {
        std::fs::create_dir_all(root.join(name)).expect("a directory");
    }
    std::fs::write(root.join("other/pyvenv.cfg"), "home = /tmp/python/bin\nversion = 3.12\n")
        .expect("a file");
    let path = |name: &str| root.join(name).display().to_string();
    let venv = |variables: &[(&str, &str)]| {
        let found = check(&json!({"cwd": true, "venv": true}), &root.join("project"), variables);
        found.replace(&path(""), "ROOT/")
    };
    let (own, other, conda) = (path("project/.venv"), path("other"), path("conda"));
    let cases = [
        venv(&[]),
        venv(&[("VIRTUAL_ENV", &own)]),
        venv(&[("VIRTUAL_ENV", &other)]),
        venv(&[("CONDA_PREFIX", &conda), ("CONDA_DEFAULT_ENV", "base")]),
        venv(&[("VIRTUAL_ENV", &own), ("CONDA_PREFIX", &conda)]),
        venv(&[("VIRTUAL_ENV", &path("gone"))]),
    ];
    insta::assert_snapshot!(cases.concat());
}

#[test]
fn secrets_are_known_by_the_words_of_a_name() {
    let value = b"value-of-8";
    for name in ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "DB_PASSWORD", "token"] {
        assert!(is_secret(name, value), "{name}");
    }
    for name in ["TOKENIZERS_PARALLELISM", "KEY", "SSH_KEY_PATH", "HF_HOME", "MONKEY"] {
        assert!(!is_secret(name, value), "{name}");
    }
    assert!(
        !is_secret("HF_TOKEN", b"short")
            && !is_secret("GOOGLE_APPLICATION_CREDENTIALS", b"/home/ada/key.json")
    );
}
