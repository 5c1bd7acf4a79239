//! What a process of MPI needs of the step that started it: variables, and directories with sockets and shared memory.

use std::collections::BTreeSet;

use jobc_sys::error::{Error, Kind, Result};
use serde_json::{Value, json};

/// How the names of variables begin that `srun --mpi` sets, and that libraries of MPI read of Slurm.
const PREFIXES: [&str; 3] = ["PMIX_", "PMI_", "SLURM_"];

/// Adds variables of the caller that the bundle does not set, and the directories that they name, to a config.json.
pub(super) fn add(config: &[u8], variables: impl Iterator<Item = (String, String)>) -> Result<Vec<u8>> {
    let wrong = |error: &dyn std::fmt::Display| {
        Error::new(Kind::Config, format!("cannot read the copy of config.json: {error}"))
    };
    let mut config: Value = serde_json::from_slice(config).map_err(|error| wrong(&error))?;
    let env = member(&mut config["process"]["env"]);
    let is_set = |env: &[Value], name: &str| {
        let name_of =
            |value: &Value| value.as_str().and_then(|pair| pair.split_once('=')).map(|pair| pair.0 == name);
        env.iter().any(|value| name_of(value) == Some(true))
    };
    let mut directories = BTreeSet::new();
    for (name, value) in variables {
        if !PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || is_set(env, &name) {
            continue;
        }
        if name == "PMIX_SERVER_TMPDIR" || name.starts_with("PMIX_") && name.ends_with("BASE_PATH") {
            directories.insert(value.clone());
        }
        env.push(json!(format!("{name}={value}")));
    }
    let mounts = member(&mut config["mounts"]);
    let mut mounted: Vec<String> = vec![];
    // One that is below another one comes after it.
    for path in directories {
        let is_below =
            |other: &String| path.strip_prefix(other.as_str()).is_some_and(|rest| rest.starts_with('/'));
        if !path.starts_with('/') || mounted.iter().any(is_below) || !std::path::Path::new(&path).is_dir() {
            continue;
        }
        mounts.push(json!({
            "destination": path, "source": path, "type": "bind", "options": ["bind", "rw", "nosuid", "nodev", "noexec"],
        }));
        mounted.push(path);
    }
    serde_json::to_vec(&config).map_err(|error| wrong(&error))
}

/// A list of a config.json, made if it is not there.
fn member(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = json!([]);
    }
    value.as_array_mut().expect("it was made a list")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_step_and_their_directories_are_added() {
        let directory = tempfile::tempdir().unwrap();
        let server = directory.path().to_str().unwrap();
        std::fs::create_dir(directory.path().join("dstore")).unwrap();
        let variables = [
            ("PMIX_RANK", "3"),
            ("PMIX_SERVER_TMPDIR", server),
            ("PMIX_DSTORE_21_BASE_PATH", &format!("{server}/dstore")),
            ("PMIX_DSTORE_ESH_BASE_PATH", "/nonexistent/dstore"),
            ("SLURM_PROCID", "3"),
            ("HOME", "/home/me"),
            ("PMI_SIZE", "8"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = br#"{"process":{"env":["PMI_SIZE=4","A=b"]}}"#;
        let added: Value = serde_json::from_slice(&add(config, variables.into_iter()).unwrap()).unwrap();
        let env: Vec<&str> =
            added["process"]["env"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(
            env.contains(&"PMIX_RANK=3") && env.contains(&"SLURM_PROCID=3") && env.contains(&"PMI_SIZE=4")
        );
        assert!(!env.contains(&"PMI_SIZE=8") && !env.iter().any(|pair| pair.starts_with("HOME=")));
        let mounts = added["mounts"].as_array().unwrap();
        assert_eq!(mounts.len(), 1);
        assert_eq!((&mounts[0]["destination"], &mounts[0]["source"]), (&json!(server), &json!(server)));
    }
}
