//! Submitting: the files of a run, which appear as a whole, and then the start of its job.

use std::sync::Arc;

use jobc_container::secret::Secret;
use jobc_schema::plan::{CODE, CODE_ARCHIVE, CODE_DIRECTORY, Plan, VolumeSource};
use jobc_schema::shell;
use jobc_sys::error::{Error, Kind, Result};

use super::answers::error_of;
use super::code;
use super::images::ImageSender;
use super::program::{Connection, START_TIMEOUT};
use super::runs::RunInfo;
use super::scripts::{NO_PROGRAM, START};
use super::secrets;
use super::sources::Sources;
use crate::host::{SendFile, Tree, TreeEntry, TreeKind};
use crate::place::Submission;
use jobc_place::outline;

/// Creates a run and starts its job; existing files are left unchanged. Returns warnings of the host.
pub(super) fn submit(
    connection: &Connection,
    images: &ImageSender,
    sources: &Arc<Sources>,
    submission: &Submission<'_>,
) -> Result<Vec<String>> {
    let mut plan = submission.built.plan.clone();
    // There it is a job of that host.
    plan.target.settings.ssh = None;
    if let Some(volume) = plan.volumes.get_mut(CODE) {
        volume.source = VolumeSource::Path { path: CODE_DIRECTORY.to_owned() };
    }
    let lines = secrets::pass_on(&mut plan, &submission.secrets)?;
    for image in submission.images {
        images.send(connection, image)?;
    }
    let name = plan.name.clone();
    let directory = connection.run_directory(&name);
    let info = RunInfo {
        name: name.clone(),
        job: submission.identity.job.clone(),
        digest: submission.identity.label().to_owned(),
        user: submission.user.to_owned(),
        tasks: plan.roles.iter().map(|role| u64::from(role.instances)).sum(),
        outputs: sources.outputs.clone(),
        outline: outline::of(&plan),
    };
    let tree = run_tree(submission, &Plan { version: 1, jobs: vec![plan] }, sources, &info)?;
    let program = connection.program()?.to_owned();
    let words = shell::join([&*directory, &*name, &*program]);
    let lines = String::from_utf8_lossy(lines.bytes());
    let script = Secret::new(format!("set -- {words}\n{}", START.replace("@SECRETS@", &lines)));
    let script = String::from_utf8_lossy(script.bytes());
    let start =
        || connection.host.send_tree_and_run(&connection.store(), &directory, &tree, &script, START_TIMEOUT);
    let (_, mut output) = start()?;
    if output.status == NO_PROGRAM {
        connection.install()?;
        (_, output) = start()?;
    }
    if output.status != 0 {
        return Err(with_setting(error_of(connection.name(), &output), connection.name(), &program));
    }
    let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(warnings.lines().filter_map(|line| line.strip_prefix("warning: ")).map(str::to_owned).collect())
}

/// `jobc run` there offers an option of its own, which a submission does not have. The setting does the same.
fn with_setting(mut error: Error, host: &str, program: &str) -> Error {
    let command = shell::join(["ssh", host, program, "config", "set", "allow-unenforced", "true"]);
    let instead = format!("by a job file without `enforce: true`, after `{command}`");
    for hint in &mut error.hints {
        *hint = hint.replace("with `--allow-unenforced`", &instead);
    }
    error
}

/// The directory of a run: `built`, `files` and `run.json`.
fn run_tree(submission: &Submission<'_>, plan: &Plan, sources: &Sources, info: &RunInfo) -> Result<Tree> {
    let failed =
        |error: serde_json::Error| Error::new(Kind::System, format!("cannot write the plan: {error}"));
    let mut tree = Tree::default();
    for file in submission.built.files.iter().filter(|file| !file.path.ends_with(CODE_ARCHIVE)) {
        let bytes = match file.path.as_str() {
            "plan.json" => serde_json::to_vec_pretty(plan).map_err(failed)?,
            _ => file.bytes.clone(),
        };
        let mut sent = SendFile::bytes(bytes);
        sent.is_executable = file.mode & 0o100 != 0;
        tree.file(&format!("built/{}", file.path), sent);
    }
    tree.entries.insert("files".to_owned(), TreeEntry { kind: TreeKind::Directory, mode: 0o755 });
    for (path, entry) in sources.tree.entries.iter().filter(|(path, _)| !path.is_empty()) {
        tree.entries.insert(format!("files/{path}"), entry.clone());
    }
    if let Some(code) = submission.built.files.iter().find(|file| file.path.ends_with(CODE_ARCHIVE)) {
        code::unpack(&code.bytes, &mut tree)?;
    }
    tree.file("run.json", SendFile::bytes(serde_json::to_vec(info).map_err(failed)?));
    Ok(tree)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::built::{BuiltDirectory, BuiltFile};
    use crate::identity::Identity;
    use crate::machine::runs;
    use crate::place::JobSecrets;
    use jobc_schema::plan::JobPlan;
    use serde_json::{Value, json};
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    /// The plan of a job with these volumes and mounts.
    pub(in crate::machine) fn plan(volumes: &Value, mounts: &Value) -> JobPlan {
        let text = json!({
            "name": "gpt-7f3k2", "target": {"name": "box", "settings": {"backends": ["oci"]}}, "images": {}, "volumes": volumes,
            "secrets": {"token": {"env": "TOKEN"}},
            "roles": [{"name": "main", "instances": 2, "image": "main", "mounts": mounts,
                       "command": {"script": {"shell": ["sh", "-c"], "script": "true"}},
                       "resources": {"cpu_millis": 100, "memory_bytes": 1024}, "completion": {"min_failed": 1}, "retry": {"max": 0, "scope": "task"},
                       "grace_period_seconds": 30, "security": {"read_only_root": false, "privileged": false}}],
            "stages": [["main"]], "gang": "auto", "network": "auto",
            "totals": {"instances": 2, "cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "gpu_slices": 0},
        });
        serde_json::from_value(text).unwrap()
    }

    /// A stand-in for `jobc`, which keeps jobs as lines of a file and the secret that it got in another.
    const JOBC: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
case "$1 $3" in
  "ps --quiet") [ ! -e jobs ] || cat jobs;;
  "run "*) [ ! -e broken ] || { echo 'error: no room' >&2; echo ' = help: wait' >&2; exit 125; }
    echo "warning: odd" >&2; printf %s "$JOBC_SECRET_0" >secret; echo gpt-7f3k2.1 >>jobs; tail -n 1 jobs;;
  "ps --format") echo '[{"id": "gpt-7f3k2.1", "state": "running", "submitted": "2026-01-01T00:00:00Z", "tasks": {"running": 2}}]';;
esac
"#;

    struct Machine {
        connection: Connection,
        scratch: tempfile::TempDir,
    }

    fn machine() -> Machine {
        let scratch = tempfile::tempdir().unwrap();
        let program = scratch.path().join("jobc");
        fs::write(&program, JOBC).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let directory = scratch.path().join("lab");
        let connection = Connection::local(directory.to_str().unwrap(), program.to_str().unwrap());
        Machine { connection, scratch }
    }

    impl Machine {
        fn submit(&self) -> Result<Vec<String>> {
            let plan = plan(&json!({}), &json!([]));
            let file = |path: &str, text: &str| BuiltFile {
                path: path.to_owned(),
                mode: 0o644,
                bytes: text.as_bytes().to_vec(),
            };
            let files = vec![file("plan.json", ""), file("oci/main-0/config.json", "{}")];
            let built = BuiltDirectory { plan, manifests: vec![], scripts: vec![], files, code: None };
            let identity = Identity { job: "gpt".to_owned(), digest: "ab".repeat(32) };
            let mut secrets = JobSecrets::default();
            secrets
                .values
                .insert("token".to_owned(), jobc_container::secret::Secret::new(b"a b\n\n".to_vec()));
            let directory = Path::new("/");
            let submission = Submission {
                built: &built,
                identity: &identity,
                user: "ann",
                directory,
                images: &[],
                secrets,
            };
            submit(&self.connection, &ImageSender::default(), &Arc::default(), &submission)
        }

        fn text(&self, path: &str) -> String {
            fs::read_to_string(self.scratch.path().join(path)).unwrap_or_default()
        }
    }

    #[test]
    fn a_job_is_started_once_with_its_secrets() {
        let machine = machine();
        assert_eq!(machine.submit().unwrap(), ["odd"]);
        assert_eq!(machine.submit().unwrap(), Vec::<String>::new());
        assert_eq!(machine.text("jobs"), "gpt-7f3k2.1\n");
        assert_eq!(machine.text("secret"), "a b\n\n");
        assert_eq!(machine.text("lab/jobs/gpt-7f3k2/id"), "gpt-7f3k2.1\n");
        // The command that started it did not come to the end.
        fs::remove_file(machine.scratch.path().join("lab/jobs/gpt-7f3k2/id")).unwrap();
        machine.submit().unwrap();
        assert_eq!(machine.text("jobs"), "gpt-7f3k2.1\n");
        let plan = machine.text("lab/jobs/gpt-7f3k2/built/plan.json");
        assert!(plan.contains("JOBC_SECRET_0") && !plan.contains("a b"), "{plan}");
        let listed = runs::list(&machine.connection).unwrap().entries;
        assert_eq!(
            (listed[0].summary().name.as_str(), listed[0].summary().job.as_str()),
            ("gpt-7f3k2", "gpt")
        );
        assert_eq!(runs::id(&machine.connection, "gpt").unwrap(), "gpt-7f3k2.1");
        // A run is known by its name.
        assert_eq!(runs::id(&machine.connection, "gpt-bbbbb").unwrap(), "gpt-bbbbb");
    }

    #[test]
    fn an_option_that_a_submission_lacks_becomes_a_command() {
        let error =
            Error::new(Kind::System, "x").help("run without these limits with `--allow-unenforced`; or not");
        assert_eq!(
            with_setting(error, "box", "bin/jobc-1").advice().as_deref(),
            Some(
                "run without these limits by a job file without `enforce: true`, after `ssh box bin/jobc-1 config set allow-unenforced true`; or not"
            )
        );
    }

    #[test]
    fn a_job_that_cannot_start_leaves_nothing() {
        let machine = machine();
        fs::write(machine.scratch.path().join("broken"), "").unwrap();
        let error = machine.submit().unwrap_err();
        assert_eq!(error.message(), "`this host`: no room");
        assert_eq!(error.advice().as_deref(), Some("wait"));
        assert_eq!(fs::read_dir(machine.scratch.path().join("lab/jobs")).unwrap().count(), 0);
    }
}
