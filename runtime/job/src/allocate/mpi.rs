//! The environment that an MPI process needs from the step that started it: variables, and directories with sockets and
//! shared memory.

use std::collections::BTreeSet;
use std::path::PathBuf;

use oci_spec::runtime::{Mount, Spec};

/// How the names of variables begin that `srun --mpi` sets, and that libraries of MPI read of Slurm.
const PREFIXES: [&str; 3] = ["PMIX_", "PMI_", "SLURM_"];

/// Adds variables of the caller that the bundle does not set, and the directories that they name, to a configuration.
pub fn add(spec: &mut Spec, variables: impl Iterator<Item = (String, String)>) {
    let mut process = spec.process().clone().unwrap_or_default();
    let env = process.env_mut().get_or_insert_default();
    let is_set = |env: &[String], name: &str| {
        env.iter().any(|pair| pair.split_once('=').is_some_and(|(other, _)| other == name))
    };
    let mut directories = BTreeSet::new();
    for (name, value) in variables {
        if !PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || is_set(env, &name) {
            continue;
        }
        env.push(format!("{name}={value}"));
        if name == "PMIX_SERVER_TMPDIR" || name.starts_with("PMIX_") && name.ends_with("BASE_PATH") {
            directories.insert(PathBuf::from(value));
        }
    }
    spec.set_process(Some(process));
    let mounts = spec.mounts_mut().get_or_insert_default();
    let mut mounted: Vec<PathBuf> = vec![];
    // One that is below another one comes after it.
    for path in directories {
        let is_mounted = mounted.iter().any(|other| path.starts_with(other));
        if !path.is_absolute() || is_mounted || !path.is_dir() {
            continue;
        }
        let mut mount = Mount::default();
        let options = ["bind", "rw", "nosuid", "nodev", "noexec"].map(str::to_owned).to_vec();
        mount
            .set_destination(path.clone())
            .set_source(Some(path.clone()))
            .set_typ(Some("bind".to_owned()))
            .set_options(Some(options));
        mounts.push(mount);
        mounted.push(path);
    }
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
        let mut spec: Spec = serde_json::from_str(
            r#"{"ociVersion":"1.1.0","process":{"cwd":"/","user":{"uid":0,"gid":0},"env":["PMI_SIZE=4","A=b"]}}"#,
        )
        .unwrap();
        add(&mut spec, variables.into_iter());
        let env = spec.process().as_ref().unwrap().env().as_ref().unwrap();
        let has = |pair: &str| env.iter().any(|other| other == pair);
        assert!(has("PMIX_RANK=3") && has("SLURM_PROCID=3") && has("PMI_SIZE=4"));
        assert!(!has("PMI_SIZE=8") && !env.iter().any(|pair| pair.starts_with("HOME=")));
        let mounts = spec.mounts().as_ref().unwrap();
        let of_server = |mount: &&Mount| mount.destination().starts_with(server);
        let [mount] = mounts.iter().filter(of_server).collect::<Vec<_>>()[..] else { panic!("{mounts:?}") };
        assert_eq!(mount.destination(), directory.path());
        assert_eq!(mount.source().as_deref(), Some(directory.path()));
    }
}
