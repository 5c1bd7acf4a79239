use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use super::*;

fn check(file: &str, registry: &str, repository: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.json");
    std::fs::write(&path, file).unwrap();
    match Credentials::of_files(vec![directory.path().join("absent.json"), path]).find(registry, repository) {
        Ok(None) => "nothing".to_owned(),
        Ok(Some(Credential::Password { user, password })) => format!("{user} with {password}"),
        Ok(Some(Credential::Identity(token))) => format!("identity {token}"),
        Ok(Some(Credential::Registry(token))) => format!("token {token}"),
        Err(error) => error.message().replace(directory.path().to_str().unwrap(), "DIR"),
    }
}

/// `me:se:cret` and `you:other`, in base64.
const FILE: &str = r#"{
    "auths": {
        "https://index.docker.io/v1/": {"auth": "bWU6c2U6Y3JldA=="},
        "http://old.example/v1/": {"auth": "bWU6c2U6Y3JldA=="},
        "quay.example": {"auth": "bWU6c2U6Y3JldA=="},
        "quay.example/team": {"auth": "eW91Om90aGVy"},
        "cloud.example": {"auth": "MDAwMDo=", "identitytoken": "id"},
        "direct.example": {"registrytoken": "raw"},
        "plain.example": {"username": "me", "password": "open"},
        "placeholder.example": {},
        "broken.example": {"auth": "!"}
    },
    "HttpHeaders": {"User-Agent": "x"}
}"#;

#[test]
fn an_entry_is_found_by_every_name_that_docker_and_podman_write() {
    assert_eq!(check(FILE, "docker.io", "library/busybox"), "me with se:cret");
    assert_eq!(check(FILE, "old.example", "a"), "me with se:cret");
    assert_eq!(check(FILE, "quay.example", "other/image"), "me with se:cret");
    assert_eq!(check(FILE, "quay.example", "team/image"), "you with other");
    assert_eq!(check(FILE, "cloud.example", "a"), "identity id");
    assert_eq!(check(FILE, "direct.example", "a"), "token raw");
    assert_eq!(check(FILE, "plain.example", "a"), "me with open");
    assert_eq!(check(FILE, "placeholder.example", "a"), "nothing");
    assert_eq!(check(FILE, "elsewhere.example", "a"), "nothing");
    assert_eq!(check("", "docker.io", "a"), "nothing");
}

#[test]
fn what_is_wrong_is_reported_without_what_is_secret() {
    assert_eq!(
        check(FILE, "broken.example", "a"),
        "`auths` of `DIR/config.json`: the entry of `broken.example` is not a name and a password in base64"
    );
    assert_eq!(
        check(r#"{"auths": {"a": "hunter2"}}"#, "a", "b"),
        "`DIR/config.json` is not a valid credentials file: line 1, column 25"
    );
    let debug = format!("{:?}", Credential::Password { user: "u".into(), password: "hunter2".into() });
    assert_eq!(debug, "Password");
}

/// The result of a helper with this script.
fn ask(script: &str, time: Duration) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("docker-credential-test");
    // Written by another process: a process forked meanwhile would keep it open, and it could not be executed
    // (ETXTBSY).
    let written = std::process::Command::new("sh")
        .args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\"", "sh"])
        .args([path.as_os_str(), script.as_ref()])
        .status();
    assert!(written.unwrap().success());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let answer = helper::query_program(&path, "registry.example", time);
    match answer {
        Ok(None) => "nothing".to_owned(),
        Ok(Some(Credential::Password { user, password })) => format!("{user} with {password}"),
        Ok(Some(other)) => format!("{other:?}"),
        Err(error) => error.message().replace(directory.path().to_str().unwrap(), "DIR"),
    }
}

#[test]
fn a_credential_helper_is_queried_by_its_protocol() {
    assert!(helper::query("../evil", "registry.example").is_err(), "a path is no name");
    let long = Duration::from_secs(20);
    let echo =
        r#"read server; printf '{"ServerURL":"%s","Username":"me","Secret":"%s"}' "$server" "$server-$1""#;
    assert_eq!(ask(echo, long), "me with registry.example-get");
    assert_eq!(ask(r#"echo '{"Username":"<token>","Secret":"t"}'"#, long), "Identity");
    assert_eq!(ask(r#"echo '{"Username":"","Secret":""}'"#, long), "nothing");
    assert_eq!(ask("echo 'credentials not found in native keychain'; exit 1", long), "nothing");
    assert!(ask("echo the chain is locked; exit 1", long).ends_with("failed: the chain is locked"));
    assert!(ask("echo nonsense", long).ends_with("returned an invalid response"));
    assert!(ask("exec sleep 600", Duration::from_millis(300)).ends_with("timed out after 0 s"));
}
