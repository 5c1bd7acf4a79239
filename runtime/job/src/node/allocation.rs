//! The nodes of a Slurm job, and the files that tell its tasks where they all are.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jobc_schema::plan::{CODE_ARCHIVE, JobPlan};
use jobc_schema::shell::quote;
use jobc_schema::steps::StepsPlan;

use super::run::{RunDirectory, variable};
use jobc_sys::error::{AtPath as _, Error, Kind, Result};

/// Where the tasks of a Slurm job run, and what they are told.
#[derive(Debug)]
pub(crate) struct Allocation {
    /// The nodes of each role, by instance.
    pub(crate) hosts: BTreeMap<String, Vec<String>>,
    /// The first port of the job.
    port: u32,
    /// The number of the Slurm job.
    pub(crate) slurm_job: String,
    /// How Slurm tracks processes: with `cgroup` a signal goes to the first process of a task, otherwise to all.
    proctrack: String,
    /// The directory of the batch script.
    pub(crate) directory: PathBuf,
    /// Where values of secrets are.
    pub(crate) secrets: PathBuf,
    /// Where the copies of bundles are.
    pub(crate) bundles: PathBuf,
}

impl Allocation {
    /// Asks Slurm about the job that this process is in.
    pub(crate) fn of_this_job(steps: &StepsPlan, job: &JobPlan, run: &RunDirectory) -> Result<Self> {
        let directory = std::env::current_dir().at_path("read", Path::new("the current directory"))?;
        let slurm_job = variable("SLURM_JOB_ID")?;
        let is_heterogeneous = steps.roles.iter().any(|role| role.component > 0);
        let mut nodes = BTreeMap::new();
        let mut hosts = BTreeMap::new();
        for role in &steps.roles {
            let of_part = match nodes.entry(role.component) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(nodes_of(role.component, is_heterogeneous)?),
            };
            let instances = job.role(&role.role).map_or(0, |planned| planned.instances) as usize;
            let first = role.first_node as usize;
            let own = of_part.get(first..first + instances).ok_or_else(|| {
                let message = format!(
                    "role `{}` needs {instances} nodes, and Slurm gave the job {}",
                    role.role,
                    of_part.len()
                );
                Error::new(Kind::State, message).help("submit the script with the `--nodes` that it has")
            })?;
            hosts.insert(role.role.clone(), own.to_vec());
        }
        let configuration = ask("scontrol", &["show", "config"])?;
        let of_run = run.path.join("bundles").join(&slurm_job);
        let beside = base(&directory);
        let is_submitted = run.path.join("job.json").exists();
        Ok(Self {
            hosts,
            port: steps.ports.of_job(slurm_job.parse().unwrap_or(0)),
            proctrack: proctrack(&configuration).to_owned(),
            secrets: match std::env::var_os("jobc_secrets") {
                Some(path) => path.into(),
                None if is_submitted => run.path.join("secrets"),
                None => beside.join("secrets"),
            },
            bundles: if is_submitted { of_run } else { beside.join(format!("bundles-{slurm_job}")) },
            slurm_job,
            directory,
        })
    }

    /// Writes what the scripts of roles read: `state/<script>.addresses`, and the lines for `sed` that fill bundles.
    /// Returns the path of the first.
    pub(crate) fn write(&self, steps: &StepsPlan, job: &JobPlan, run: &RunDirectory) -> Result<PathBuf> {
        let write = |name: String, text: String| {
            let path = run.path.join("state").join(name);
            std::fs::write(&path, text).at_path("write", &path).map(|()| path)
        };
        if steps.bundles {
            write(format!("{}.places", steps.script), self.places(steps, job))?;
        }
        write(format!("{}.addresses", steps.script), self.addresses(steps, run))
    }

    fn addresses(&self, steps: &StepsPlan, run: &RunDirectory) -> String {
        let path = |path: &Path| quote(&path.to_string_lossy());
        let mut text = format!(
            "jobc_directory={} jobc_run={} jobc_secrets={}\njobc_bundles={} jobc_group={} jobc_slurm_job={} jobc_proctrack={}\njobc_port={}\n",
            path(&self.directory),
            path(&run.path),
            path(&self.secrets),
            path(&self.bundles),
            steps.script,
            self.slurm_job,
            quote(&self.proctrack),
            self.port,
        );
        for (role, hosts) in &self.hosts {
            let hosts: Vec<String> = hosts.iter().map(|host| quote(host)).collect();
            let _ = writeln!(text, "jobc_hosts_{}=({})", role.replace('-', "_"), hosts.join(" "));
        }
        text
    }

    /// The placeholders of bundles; roles of other Slurm jobs have no address.
    fn places(&self, steps: &StepsPlan, job: &JobPlan) -> String {
        let mut text = String::new();
        for role in &job.roles {
            let hosts = self.hosts.get(&role.name);
            for index in 0..role.instances {
                let host = hosts.and_then(|hosts| hosts.get(index as usize)).map_or("", String::as_str);
                let _ = writeln!(text, "s#@jobc:host:{}:{index}@#{host}#g", role.name);
                for port in steps.ports.open.iter().filter(|port| port.role == role.name) {
                    for number in 0..port.count {
                        let value = self.port + port.offset + number + index * port.count;
                        let label = &port.label;
                        let _ =
                            writeln!(text, "s#@jobc:port:{}:{label}:{index}+{number}@#{value}#g", role.name);
                    }
                }
            }
        }
        text
    }

    /// Unpacks the code of the run, once for all its Slurm jobs, and puts it where bundles look for it.
    pub(crate) fn unpack_code(&self, steps: &StepsPlan, run: &RunDirectory) -> Result<()> {
        if !steps.code {
            return Ok(());
        }
        let (code, new) = (run.path.join("code"), run.path.join(format!("code-{}", self.slurm_job)));
        let archive = self.directory.join(CODE_ARCHIVE);
        if !code.is_dir() {
            let _ = std::fs::remove_dir_all(&new);
            std::fs::create_dir(&new).at_path("create the directory", &new)?;
            let words = [Path::new("-xzf"), &archive, Path::new("-C"), &new];
            let status = Command::new("tar").args(words).stdin(Stdio::null()).status();
            if !status.is_ok_and(|status| status.success()) {
                let message = format!("cannot unpack the code of the job, `{}`", archive.display());
                return Err(Error::new(Kind::System, message));
            }
            // Another Slurm job of the run may have been faster.
            if std::fs::rename(&new, &code).is_err() {
                let _ = std::fs::remove_dir_all(&new);
            }
        }
        if steps.bundles {
            let volumes = self.bundles.join("volumes");
            std::fs::create_dir_all(&volumes).at_path("create the directory", &volumes)?;
            let link = volumes.join("jobc-code");
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(&code, &link).at_path("create the link", &link)?;
        }
        Ok(())
    }
}

/// The nodes of a part of the allocation, in the order of their names.
fn nodes_of(component: u32, is_heterogeneous: bool) -> Result<Vec<String>> {
    let name = if is_heterogeneous {
        format!("SLURM_JOB_NODELIST_HET_GROUP_{component}")
    } else {
        "SLURM_JOB_NODELIST".to_owned()
    };
    let found = ask("scontrol", &["show", "hostnames", &variable(&name)?])?;
    Ok(found.lines().map(str::to_owned).collect())
}

/// Where the runs of a target are that `sbatch` starts in the directory of its scripts.
pub(crate) fn base(directory: &Path) -> PathBuf {
    let text = directory.to_string_lossy();
    PathBuf::from(format!("{}.slurm", text.strip_suffix("/slurm").unwrap_or(&text)))
}

fn proctrack(configuration: &str) -> &str {
    let line = configuration.lines().find_map(|line| line.strip_prefix("ProctrackType"));
    line.and_then(|line| line.rsplit_once("proctrack/")).map_or("", |(_, kind)| kind.trim())
}

/// What a command of Slurm prints.
pub(crate) fn ask(program: &str, words: &[&str]) -> Result<String> {
    let failed =
        |why: &str| Error::new(Kind::System, format!("cannot run `{program} {}`: {why}", words.join(" ")));
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(&error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_beside_the_directory_of_the_target() {
        for (directory, expected) in
            [("/a/out/x/cluster/slurm", "/a/out/x/cluster.slurm"), ("/a/b", "/a/b.slurm")]
        {
            assert_eq!(base(Path::new(directory)), Path::new(expected));
        }
    }

    #[test]
    fn the_way_to_track_processes_is_in_the_configuration() {
        let text = "PrologFlags = Alloc\nProctrackType           = proctrack/cgroup\nPropagate = x\n";
        assert_eq!((proctrack(text), proctrack("")), ("cgroup", ""));
    }
}
