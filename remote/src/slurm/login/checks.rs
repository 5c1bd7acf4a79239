//! What a cluster has, and what it says of a script that is not submitted.

use std::fs;
use std::process::Stdio;

use jobc_sys::error::describe_io;
use jobc_sys::program_path;
use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

use super::commands::{self, Reply};
use super::fault::Fault;
use super::question::{Login, Question};
use super::submit::use_account;

/// Asks about scripts without submitting them.
#[derive(Deserialize, Serialize)]
pub(crate) struct Check(pub(crate) Vec<String>);

/// What `sbatch --test-only` says of a script.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct TestOnly {
    pub(crate) is_ok: bool,
    pub(crate) words: String,
    /// The nodes that are down or drained, if they may be why it is refused: `sbatch` lets a job wait for them.
    pub(crate) out: String,
}

impl Question for Check {
    /// `scontrol show config` and `show partition`, and an answer for each script.
    type Answer = (String, Vec<TestOnly>);

    fn answer(self, _: &Login) -> Result<Self::Answer, Fault> {
        // Both at the same time: each waits for the controller.
        std::thread::scope(|scope| {
            let facts = scope.spawn(facts);
            let answers = self.0.iter().map(|script| test_only(script)).collect::<Result<Vec<_>, _>>();
            let facts = facts.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((facts, answers?))
        })
    }
}

/// The configuration and the partitions.
fn facts() -> Result<String, Fault> {
    let ask = || -> Result<Reply, Fault> {
        let config = commands::ask(&["scontrol", "--oneliner", "show", "config"])?;
        if !config.is_ok {
            return Ok(config);
        }
        let partitions = commands::ask(&["scontrol", "--oneliner", "show", "partition"])?;
        Ok(Reply { text: config.text + &partitions.text, ..partitions })
    };
    let is_known = |said: &Reply| said.text.contains("SLURM_VERSION");
    let said = ask()?;
    // A busy controller may drop a question; one that is down was asked for long enough.
    let is_down = said.all().contains("connect failure");
    let said = if is_known(&said) || is_down { said } else { ask()? };
    if is_known(&said) { Ok(said.text) } else { Err(Fault::NoAnswer(said.reason())) }
}

fn test_only(script: &str) -> Result<TestOnly, Fault> {
    let mut command = commands::command(&["sbatch", "--test-only", "--chdir=/"]);
    use_account(&mut command, script);
    let said = commands::run(command, Some(script.as_bytes()))?;
    if said.is_unanswered() {
        return Err(Fault::NoAnswer(said.reason()));
    }
    let out = if said.all().contains("configuration is not available") {
        let words = ["sinfo", "--noheader", "--states=down,drain,fail,maint", "--format=%N"];
        let mut nodes: Vec<String> = commands::ask(&words)?.text.lines().map(str::to_owned).collect();
        nodes.sort();
        nodes.dedup();
        nodes.join(",")
    } else {
        String::new()
    };
    Ok(TestOnly { is_ok: said.is_ok, words: said.all(), out })
}

/// What the user has on this cluster.
#[derive(Deserialize, Serialize)]
pub(crate) struct CheckAccess {
    pub(crate) container: String,
    pub(crate) images: String,
    pub(crate) partition: String,
    /// The program that nodes run, unless it is copied.
    pub(crate) program: String,
}

/// One thing of it: what it is needed for, what it is, and whether it is there.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct AccessLine {
    pub(crate) key: String,
    pub(crate) what: String,
    pub(crate) is_there: bool,
}

impl Question for CheckAccess {
    type Answer = Vec<AccessLine>;

    fn answer(self, login: &Login) -> Result<Vec<AccessLine>, Fault> {
        let mut found = Vec::new();
        let mut say = |key: &str, what: String, is_there: bool| {
            found.push(AccessLine { key: key.to_owned(), what, is_there });
        };
        let version = commands::ask(&["sinfo", "--version"])?.all();
        let ping = commands::ask(&["scontrol", "ping"])?;
        let is_up = ping.is_ok;
        let version = version.lines().last().unwrap_or("Slurm").to_owned();
        say("slurm", if is_up { version } else { format!("{version}: {}", ping.reason()) }, is_up);
        let shown = login.directory.display();
        match writable(login) {
            Ok(()) => say("directory", format!("writable directory {shown}"), true),
            Err(why) => say("directory", format!("writable directory {shown}: {why}"), false),
        }
        for name in self.partition.split(',').filter(|name| !name.is_empty() && is_up) {
            let words = ["sinfo", "--noheader", &format!("--partition={name}"), "--format=%P"];
            let is_there = commands::ask(&words)?.text.lines().any(|line| !line.trim().is_empty());
            say("partition", format!("partition {name}"), is_there);
        }
        // What login nodes have may differ from what nodes have; it is the best guess without a job.
        let is_in_path = |name: &str| program_path::find(name).is_some();
        match self.container.as_str() {
            "jobc" => say(
                "container",
                "user namespaces".to_owned(),
                runs(&["unshare", "--user", "--map-root-user", "true"]),
            ),
            "apptainer" => say("container", "apptainer in PATH".to_owned(), is_in_path("apptainer")),
            "pyxis" => {
                let help = commands::ask(&["srun", "--help"])?;
                say(
                    "container",
                    "pyxis: srun --container-image".to_owned(),
                    help.text.contains("container-image"),
                );
            }
            "oci" => {
                let config = commands::ask(&["scontrol", "show", "config"])?;
                let has = config.text.lines().any(|line| line.starts_with("OCI"));
                say("container", "oci.conf of the cluster".to_owned(), has);
            }
            _ => {}
        }
        if !self.program.is_empty() {
            let path = commands::path(&self.program);
            say("program", self.program.clone(), runs(&[&path.to_string_lossy(), "--version"]));
        }
        if !self.images.is_empty() {
            say("images", format!("directory {}", self.images), commands::path(&self.images).is_dir());
        }
        let accounting = commands::ask(&["sacct", "--noheader", "--allocations", "--starttime=now"]);
        say("accounting", "accounting (sacct)".to_owned(), accounting.is_ok_and(|said| said.is_ok));
        Ok(found)
    }
}

/// Why runs cannot be made.
fn writable(login: &Login) -> Result<(), String> {
    let runs = login.runs();
    fs::create_dir_all(&runs).map_err(|error| describe_io(&error))?;
    access(&runs, Access::WRITE_OK).map_err(|errno| describe_io(&errno.into()))
}

/// Whether a command succeeds.
fn runs(words: &[&str]) -> bool {
    let mut command = commands::command(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Each node of each partition with its state, processors and GPUs, and the partitions of the jobs that wait.
#[derive(Deserialize, Serialize)]
pub(crate) struct Capacities;

impl Question for Capacities {
    type Answer = (String, String);

    fn answer(self, _: &Login) -> Result<(String, String), Fault> {
        let format =
            "--Format=PartitionName:64,NodeHost:64,StateCompact:24,CPUsState:40,Gres:250,GresUsed:250";
        let nodes = commands::ask(&["sinfo", "--Node", "--noheader", format])?.answer()?;
        let waiting =
            commands::ask(&["squeue", "--noheader", "--states=PENDING", "--format=%P"])?.answer()?;
        Ok((nodes, waiting))
    }
}
