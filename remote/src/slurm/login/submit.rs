//! Submits a run, or completes an earlier attempt.
//!
//! Every step can be repeated. A run exists with its `job.json`, which is renamed last. Of several Slurm jobs, the first
//! are held until all are there and their ids written down, so none can end before. One whose id was not written down is
//! found by its comment, or its script has written it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use jobc_sys::error::{AtPath as _, file_error};
use serde::{Deserialize, Serialize};

use super::commands::{self, Reply};
use super::fault::Fault;
use super::new_run::{self, NewRun};
use super::question::{Login, Question};
use crate::slurm::record::RunRecord;

/// States in which a job that was submitted before is found.
const STATES: &str = "--states=PENDING,RUNNING,CONFIGURING,COMPLETING";

/// A Slurm job to submit.
#[derive(Deserialize, Serialize)]
pub(crate) struct NewJob {
    pub(crate) group: String,
    /// The groups that must succeed before.
    pub(crate) after: Vec<String>,
    /// The role of a script that Slurm alone runs.
    pub(crate) role: Option<String>,
}

/// Submits the Slurm jobs of a run.
#[derive(Deserialize, Serialize)]
pub(crate) struct Submit {
    /// The file name of the program that nodes run.
    pub(crate) program: Option<String>,
    pub(crate) plan: String,
    /// The directory of the user, which `image: {host: {cwd: true}}` uses.
    pub(crate) cwd: String,
    pub(crate) run: NewRun,
    pub(crate) jobs: Vec<NewJob>,
}

/// What came of a submission.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) enum Submitted {
    Done,
    /// `sbatch` refuses the script of a group, with these words.
    Refused {
        group: String,
        words: String,
    },
    /// The name, or one of several, is that of another run.
    Taken,
}

impl Question for Submit {
    type Answer = Submitted;

    fn answer(self, login: &Login) -> Result<Submitted, Fault> {
        use_program(login, self.program.as_deref())?;
        let name = self.run.name.as_str();
        let run = login.run(name);
        let _lock = new_run::lock(login, name)?;
        let is_known = match record(&run) {
            Some(record) if record.plan != self.plan => return Ok(Submitted::Taken),
            Some(_) => true,
            None => false,
        };
        if !is_known {
            self.run.write(login).inspect_err(|_| drop(new_run::remove(&run)))?;
        }
        let mut ids: BTreeMap<&str, String> = BTreeMap::new();
        for job in &self.jobs {
            let comment = format!("jobc:{name}:{}:{}", self.plan, job.group);
            let path = run.join("jobs").join(&job.group);
            let written = fs::read_to_string(&path).unwrap_or_default().trim().to_owned();
            let known = if written.is_empty() && is_known { find(&comment)? } else { Some(written) };
            let id = match known.filter(|id| !id.is_empty()) {
                Some(id) => id,
                None => match self.sbatch(&run, job, &comment, &ids)? {
                    Ok(id) => id,
                    Err(said) => {
                        // What was asked of a controller that is too busy may have been done.
                        if !said.errors.contains("timed out") {
                            take_back(&run, &ids)?;
                        }
                        if said.is_unanswered() {
                            return Err(Fault::NoAnswer(said.reason()));
                        }
                        return Ok(Submitted::Refused { group: job.group.clone(), words: said.all() });
                    }
                },
            };
            // The script of a job writes it too; of two, the first one counts.
            let id = match write_id(&path, &id)? {
                Some(other) if other != id => {
                    commands::ask(&["scancel", &id])?;
                    other
                }
                _ => id,
            };
            ids.insert(&job.group, id);
        }
        let is_ours = |job: &&NewJob| job.after.is_empty() && !is_held(&script(&run, &job.group));
        let held = self.jobs.iter().filter(is_ours).map(|job| ids[job.group.as_str()].as_str());
        let held = held.collect::<Vec<_>>().join(",");
        finish(
            &[&run],
            Some(held.as_str()).filter(|held| self.jobs.len() > 1 && !held.is_empty()),
            is_known,
        )?;
        Ok(Submitted::Done)
    }
}

impl Submit {
    /// Submits a script: its id, or what Slurm says.
    fn sbatch(
        &self,
        run: &Path,
        job: &NewJob,
        comment: &str,
        ids: &BTreeMap<&str, String>,
    ) -> Result<Result<String, Reply>, Fault> {
        let directory = run.join("target/slurm");
        let script = script(run, &job.group);
        let mut options = vec![format!("--comment={comment}"), format!("--chdir={}", directory.display())];
        options.push(format!("--output={}/out/{}.log", run.display(), job.group));
        if job.after.is_empty() {
            options.extend((self.jobs.len() > 1).then(|| "--hold".to_owned()));
        } else {
            let after: String = job.after.iter().map(|other| format!(":{}", ids[other.as_str()])).collect();
            options.extend(["--kill-on-invalid-dep=yes".to_owned(), format!("--dependency=afterok{after}")]);
        }
        let arguments = match &job.role {
            Some(role) => vec![
                format!("--output={}/logs/{role}-%t.log", run.to_string_lossy().replace('%', "%%")),
                "--open-mode=append".to_owned(),
            ],
            None => vec![run.to_string_lossy().into_owned()],
        };
        sbatch(&self.cwd, &options, &script, &arguments)
    }
}

fn script(run: &Path, group: &str) -> PathBuf {
    run.join(format!("target/slurm/{group}.sbatch"))
}

/// Whether the target asks for jobs that wait until their user releases them.
fn is_held(script: &Path) -> bool {
    fs::read_to_string(script).is_ok_and(|text| text.lines().any(|line| line == "#SBATCH --hold"))
}

/// The record of a run, if it exists.
fn record(run: &Path) -> Option<RunRecord> {
    let text = fs::read(run.join("job.json")).ok()?;
    // One that cannot be read is that of another version.
    Some(serde_json::from_slice(&text).unwrap_or_default())
}

/// Runs `sbatch`: the id of the job, or what Slurm says.
fn sbatch(
    cwd: &str,
    options: &[String],
    script: &Path,
    arguments: &[String],
) -> Result<Result<String, Reply>, Fault> {
    let mut command = commands::command(&["sbatch", "--parsable", "--open-mode=append"]);
    command.args(options).arg(script).args(arguments);
    use_account(&mut command, &fs::read_to_string(script).unwrap_or_default());
    command.current_dir(if Path::new(cwd).is_dir() { commands::path(cwd) } else { commands::path("~/") });
    let said = commands::run(command, None)?;
    let id = said.text.lines().last().and_then(|line| line.split(';').next()).unwrap_or_default().to_owned();
    Ok(if said.is_ok && !id.is_empty() { Ok(id) } else { Err(said) })
}

/// Has `sbatch` charge the account that the user's own commands do, unless the script names one.
pub(super) fn use_account(command: &mut std::process::Command, script: &str) {
    if let Ok(account) = std::env::var("SBATCH_ACCOUNT")
        && !script.lines().any(|line| line.starts_with("#SBATCH --account="))
    {
        command.env("SBATCH_ACCOUNT", account);
    }
}

/// The id of a Slurm job that an earlier attempt submitted, by its comment.
fn find(comment: &str) -> Result<Option<String>, Fault> {
    let user = format!("--user={}", commands::uid());
    let text = commands::ask(&["squeue", &user, STATES, "--noheader", "--format=%i %k"])?.answer()?;
    let id_of =
        |line: &str| line.split_once(' ').filter(|(_, own)| *own == comment).map(|(id, _)| id.to_owned());
    let id = text.lines().find_map(id_of);
    Ok(id.map(|id| id.split(['_', '+']).next().unwrap_or_default().to_owned()))
}

/// Writes an id down unless one is there, which is returned.
fn write_id(path: &Path, id: &str) -> Result<Option<String>, Fault> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => {
            file.write_all(format!("{id}\n").as_bytes()).at_path("write", path)?;
            Ok(None)
        }
        Err(_) => Ok(fs::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
            .filter(|other| !other.is_empty())),
    }
}

/// Takes back what this attempt has done.
fn take_back(run: &Path, ids: &BTreeMap<&str, String>) -> Result<(), Fault> {
    if !ids.is_empty() {
        let words: Vec<&str> = ["scancel"].into_iter().chain(ids.values().map(String::as_str)).collect();
        commands::ask(&words)?;
    }
    new_run::remove(run).map_err(|error| file_error("remove", run, &error).into())
}

/// Lets the held jobs start, and says of all runs that they are complete; the first run is the last.
fn finish(runs: &[&Path], held: Option<&str>, is_known: bool) -> Result<(), Fault> {
    let Some(first) = runs.first().map(|run| run.join("submitted")) else { return Ok(()) };
    if let Some(held) = held
        && !first.exists()
    {
        let released = commands::ask(&["scontrol", "release", held])?;
        // One that was released before may run or have ended.
        if !released.is_ok && !is_known {
            return released.check().map(drop);
        }
    }
    for run in runs.iter().rev() {
        let path = run.join("submitted");
        fs::write(&path, format!("{}\n", crate::slurm::time::now())).at_path("write", &path)?;
    }
    Ok(())
}

/// Gives jobs a program of the user: the name with its version alone leads to it.
fn use_program(login: &Login, name: Option<&str>) -> Result<(), Fault> {
    let Some(name) = name else { return Ok(()) };
    let bin = login.directory.join("bin");
    if !bin.join(name).exists() {
        return Err(Fault::NoProgram);
    }
    let link = bin.join(name.rsplit_once('-').map_or(name, |(version, _)| version));
    if fs::read_link(&link).is_ok_and(|target| target == Path::new(name)) {
        return Ok(());
    }
    let new = bin.join(format!(".link-{}", std::process::id()));
    let made =
        new_run::remove(&new).and_then(|()| symlink(name, &new)).and_then(|()| fs::rename(&new, &link));
    made.map_err(|error| file_error("write", &link, &error).into())
}

/// Submits the jobs of a matrix as an array, or completes an earlier attempt. Each run is written down as a task of the
/// array. Until the first run is complete, the same command completes all of them.
#[derive(Deserialize, Serialize)]
pub(crate) struct SubmitArray {
    pub(crate) program: Option<String>,
    pub(crate) plan: String,
    pub(crate) cwd: String,
    /// How many run at a time.
    pub(crate) limit: Option<u32>,
    /// The first run of another array, which ends before this one starts.
    pub(crate) after: Option<String>,
    pub(crate) script: String,
    pub(crate) runs: Vec<NewRun>,
}

impl Question for SubmitArray {
    type Answer = Submitted;

    fn answer(self, login: &Login) -> Result<Submitted, Fault> {
        use_program(login, self.program.as_deref())?;
        let names: Vec<&str> = self.runs.iter().map(|run| run.name.as_str()).collect();
        let paths: Vec<_> = names.iter().map(|name| login.run(name)).collect();
        let (leader, first) = (names[0], &paths[0]);
        let _lock = new_run::lock(login, leader)?;
        let list = format!("{}\n", names.join("\n"));
        let is_known = first.join("array.complete").exists();
        // Runs of another submission stay as they are: each missing one is submitted on its own.
        let is_other = if is_known {
            fs::read_to_string(first.join("array")).is_ok_and(|own| own != list)
        } else {
            paths.iter().any(|run| run.join("jobs/job").exists() || run.join("submitted").exists())
        };
        if is_other {
            return Ok(Submitted::Taken);
        }
        if !is_known {
            self.write(login, first, &list).inspect_err(|_| remove_all(&paths))?;
        }
        let comment = format!("jobc:{leader}:{}:array", self.plan);
        let written = fs::read_to_string(first.join("array.id")).unwrap_or_default().trim().to_owned();
        let known = if written.is_empty() && is_known { find(&comment)? } else { Some(written) };
        let id = match known.filter(|id| !id.is_empty()) {
            Some(id) => id,
            None => match self.sbatch(login, first, &comment)? {
                Ok(id) => id,
                Err(said) => {
                    if !said.errors.contains("timed out") {
                        remove_all(&paths);
                    }
                    if said.is_unanswered() {
                        return Err(Fault::NoAnswer(said.reason()));
                    }
                    return Ok(Submitted::Refused { group: "job".to_owned(), words: said.all() });
                }
            },
        };
        let path = first.join("array.id");
        fs::write(&path, format!("{id}\n")).at_path("write", &path)?;
        for (number, run) in paths.iter().enumerate() {
            write_id(&run.join("jobs/job"), &format!("{id}_{number}"))?;
        }
        let runs: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        let held = (!is_held(&first.join("array.sbatch"))).then_some(id.as_str());
        finish(&runs, held, is_known)?;
        Ok(Submitted::Done)
    }
}

impl SubmitArray {
    fn write(&self, login: &Login, first: &Path, list: &str) -> Result<(), Fault> {
        for run in &self.runs {
            new_run::make(login, &run.name)?;
            run.write(login)?;
        }
        for (name, text) in
            [("array.sbatch", self.script.as_str()), ("array", list), ("array.complete", "complete\n")]
        {
            let path = first.join(name);
            fs::write(&path, text).at_path("write", &path)?;
        }
        Ok(())
    }

    fn sbatch(&self, login: &Login, first: &Path, comment: &str) -> Result<Result<String, Reply>, Fault> {
        let limit = self.limit.map(|limit| format!("%{limit}")).unwrap_or_default();
        let mut options = vec![
            "--hold".to_owned(),
            format!("--array=0-{}{limit}", self.runs.len() - 1),
            format!("--comment={comment}"),
            format!("--chdir={}", first.display()),
            format!("--output={}/out/array-%a.log", first.display()),
        ];
        if let Some(previous) = &self.after
            && let Ok(id) = fs::read_to_string(login.run(previous).join("array.id"))
        {
            // An array that has ended may be forgotten, and a dependency on it is refused.
            let said = commands::ask(&["squeue", "--noheader", &format!("--jobs={}", id.trim())])?;
            if !said.text.trim().is_empty() {
                options.push(format!("--dependency=afterany:{}", id.trim()));
            }
        }
        sbatch(&self.cwd, &options, &first.join("array.sbatch"), &[])
    }
}

fn remove_all(runs: &[impl AsRef<Path>]) {
    for run in runs {
        let _ = new_run::remove(run.as_ref());
    }
}
