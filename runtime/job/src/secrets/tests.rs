use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::json;

use super::*;
use crate::directory::Directory;
use jobc_sys::id::JobId;

/// A plan of one role that uses secrets as a test defines.
fn plan(secrets: &serde_json::Value, env: &serde_json::Value) -> JobPlan {
    jobc_fake_gpus::plan::plan(&json!({
        "secrets": secrets,
        "roles": [{"name": "a", "env": env}],
    }))
}

fn directory(state: &Path) -> Directory {
    let id = JobId { name: "a".to_owned(), run: 1 };
    Directory { id, state: state.to_owned(), record: state.to_owned() }
}

#[test]
fn a_secret_comes_from_a_file_beside_the_job_or_from_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("key"), "s3cr3t\n").unwrap();
    let plan = plan(
        &json!({"key": {"file": "key"}, "home": {"env": "HOME"}, "unused": {"env": "NOT_SET_ANYWHERE"}}),
        &json!({"KEY": {"secret": "key"}, "H": {"secret": "home"}}),
    );
    let secrets = Secrets::read(&plan, dir.path()).unwrap();
    assert_eq!(secrets.get("key").unwrap().bytes(), b"s3cr3t\n");
    assert_eq!(secrets.get("key").unwrap().line(), b"s3cr3t");
    let home = std::env::var("HOME").unwrap();
    assert_eq!(secrets.values().collect::<Vec<_>>(), [b"s3cr3t", home.as_bytes()]);
    assert!(secrets.get("unused").is_err());
}

#[test]
fn missing_secrets_are_named_without_any_values() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |source: serde_json::Value| {
        let plan = plan(&json!({"token": source}), &json!({"TOKEN": {"secret": "token"}}));
        let error = Secrets::read(&plan, dir.path()).unwrap_err();
        let output = format!("{error}\n{}", error.advice().as_deref().unwrap_or_default());
        let home = std::env::var("HOME").unwrap();
        output.replace(dir.path().to_str().unwrap(), "DIRECTORY").replace(&format!("{home}/"), "HOME/")
    };
    std::fs::create_dir(dir.path().join("directory")).unwrap();
    std::fs::write(dir.path().join("large"), vec![b'x'; (1 << 20) + 1]).unwrap();
    insta::assert_snapshot!(
        [
            json!({"env": "NOT_SET_ANYWHERE"}),
            json!({"file": "absent"}),
            json!({"file": "~/absent-in-a-test"}),
            json!({"file": "directory"}),
            json!({"file": "large"}),
            json!({"store": {"name": "vault", "key": "token"}}),
        ]
        .map(refused)
        .join("\n\n"),
        @r"
    the secret `token` needs the environment variable `NOT_SET_ANYWHERE`, which is not set
    set it where the job is started: `export NOT_SET_ANYWHERE=…`

    cannot read the secret `token` from `DIRECTORY/absent`: no such file or directory (ENOENT)


    cannot read the secret `token` from `HOME/absent-in-a-test`: no such file or directory (ENOENT)


    cannot read the secret `token` from `DIRECTORY/directory`: not a regular file


    cannot read the secret `token` from `DIRECTORY/large`: it is larger than 1 MiB


    the secret `token` comes from `vault/token` of a secret store, which this host does not have
    for runs on this host write `token: {env: NAME}` or `token: {file: PATH}`
    "
    );
}

#[test]
fn a_printed_secret_hides_its_value() {
    let secret = Secret::new("hunter2");
    let mut variables = SecretEnvironment::default();
    variables.push("PASSWORD", &secret).unwrap();
    let mut secrets = Secrets::default();
    secrets.values.insert("password".to_owned(), secret.clone());
    let shown = format!("{secret:?} {variables:?} {secrets:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert_eq!(format!("{variables:?}"), r#"["PASSWORD=***"]"#);
    let error = variables.push("P", &Secret::new(b"hun\0ter2".to_vec())).unwrap_err();
    assert!(!error.to_string().contains("hun"), "{error}");
}

#[test]
fn a_file_with_a_secret_lies_in_memory_and_goes_with_the_job() {
    let dir = tempfile::tempdir().unwrap();
    let place = directory(dir.path()).secrets().unwrap();
    let name = Path::new("files/a/0");
    let path = place.create_file(name, &Secret::new("s3cr3t\n"), 0o440, None).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"s3cr3t\n");
    let status = std::fs::metadata(&path).unwrap();
    assert_eq!(status.permissions().mode() & 0o7777, 0o440);
    assert!(jobc_container::secret_directory::is_in_memory(&path));
    assert_eq!(std::fs::metadata(place.path()).unwrap().permissions().mode() & 0o7777, 0o700);
    // Another attempt of a task gets the same file.
    let inode = status.ino();
    let again = place.create_file(name, &Secret::new("other"), 0o440, None).unwrap();
    assert_eq!(std::fs::metadata(again).unwrap().ino(), inode);
    place.remove().unwrap();
    assert!(!place.path().exists());
    place.remove().unwrap();
}

#[test]
fn jobs_of_one_name_have_places_of_their_own() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = |dir: &tempfile::TempDir| directory(dir.path()).secrets().unwrap();
    assert_ne!(place(&one), place(&two));
    assert_eq!(place(&one), place(&one));
}

#[test]
fn a_place_on_a_disk_is_refused() {
    // The record of these tests' own program lies on a disk, unless all here is in memory.
    let disk = std::env::current_exe().unwrap();
    let disk = disk.parent().unwrap();
    if jobc_container::secret_directory::is_in_memory(disk) {
        jobc_test_skip::skip("a build directory on a disk");
        return;
    }
    let dir = tempfile::tempdir_in(disk).unwrap();
    let place = directory(dir.path()).secrets().unwrap();
    assert!(place.path().starts_with("/dev/shm"), "{place:?}");
}

#[test]
fn a_directory_that_another_could_look_into_holds_no_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("own");
    std::fs::create_dir(&own).unwrap();
    let refused = |path: &Path| {
        let error = jobc_container::secret_directory::refuse_foreign(path).unwrap_err().to_string();
        error.replace(dir.path().to_str().unwrap(), "DIR")
    };
    let bits = |mode| std::fs::set_permissions(&own, std::fs::Permissions::from_mode(mode)).unwrap();
    bits(0o700);
    jobc_container::secret_directory::refuse_foreign(&own).unwrap();
    bits(0o711);
    assert_eq!(refused(&own), "the directory for secrets `DIR/own` is open to other users");
    bits(0o700);
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&own, &link).unwrap();
    assert_eq!(refused(&link), "cannot open the directory `DIR/link`: not a directory (ENOTDIR)");
    if jobc_test_skip::is_root() {
        std::os::unix::fs::chown(&own, Some(1234), None).unwrap();
        assert_eq!(refused(&own), "the directory for secrets `DIR/own` belongs to user 1234");
    }
}
