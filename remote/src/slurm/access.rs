//! How to reach a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use jobc_schema::plan::JobPlan;
use jobc_schema::target::SlurmTarget;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::parallel::lock;

use super::files::Contents;
use super::login::{self, FindStep, Letter, Login, NodeProgram, Question, Request};
use crate::built::BatchScript;
use crate::host::{Host, ImageLayout, Program, Running, Streams};

/// How long an answer may take without a byte. Slurm's own commands give up after 100 s at most by default.
const TIMEOUT: Duration = Duration::from_mins(5);
/// The exit codes of a shell that cannot run a program.
const NOT_FOUND: [i32; 2] = [126, 127];

/// A host with Slurm's commands, and the target's settings.
#[derive(Debug)]
pub struct Access {
    /// Where Slurm's commands run.
    pub host: Host,
    /// The directory on the shared file system in which runs are kept, once it is known for the user.
    directory: OnceLock<String>,
    /// The settings of the target.
    pub settings: SlurmTarget,
    /// This program, which the nodes may get a copy of.
    program: Program,
    /// The files of jobs by the directory of the job file and their volumes.
    contents: Mutex<BTreeMap<(PathBuf, String), Arc<Contents>>>,
    /// The images that were sent.
    images: Mutex<BTreeSet<String>>,
}

impl Access {
    /// Access through a host.
    pub fn new(host: Host, settings: SlurmTarget, program: Program) -> Self {
        Self {
            host,
            program,
            directory: OnceLock::new(),
            settings,
            contents: Mutex::default(),
            images: Mutex::default(),
        }
    }

    /// The directory on the shared file system in which runs are kept; by default one in the user's home there. Users of
    /// one target have each their own: the name is that which the user has there.
    pub(crate) fn directory(&self) -> Result<&str> {
        if let Some(directory) = self.directory.get() {
            return Ok(directory);
        }
        let written = self.settings.directory.as_deref().unwrap_or(SlurmTarget::DIRECTORY);
        let directory = if SlurmTarget::names_user(written) {
            let output = self.host.run(&["id", "-un"], None, TIMEOUT)?;
            SlurmTarget::of_user(written, output.text().trim())
        } else {
            written.to_owned()
        };
        Ok(self.directory.get_or_init(|| directory))
    }

    fn login(&self) -> Result<Login> {
        self.directory().map(Login::new)
    }

    /// The answer to a question, of this process or of `jobc` on the login node. `what` are words that follow "cannot".
    ///
    /// # Errors
    ///
    /// The host cannot be reached, or Slurm does not answer there.
    pub(crate) fn ask<Q: Question + Into<Request>>(&self, what: &str, question: Q) -> Result<Q::Answer> {
        let answer = match &self.host {
            Host::Local => self.login()?.ask(question),
            Host::Ssh(_) => self.ask_there(question)?,
        };
        answer.map_err(|fault| fault.error(what))
    }

    fn ask_there<Q: Question + Into<Request>>(
        &self,
        question: Q,
    ) -> Result<std::result::Result<Q::Answer, login::Fault>> {
        let directory = self.directory()?.to_owned();
        let letter = Letter { version: login::VERSION.to_owned(), directory, request: question.into() };
        let unreadable = |error: serde_json::Error| {
            let message = format!("`jobc` on `{}` says something unexpected: {error}", self.host.name());
            Error::new(Kind::System, message).help("leave out `slurm.jobc`, which copies this program")
        };
        let letter = serde_json::to_vec(&letter).map_err(unreadable)?;
        let program = self.program_there()?;
        let ask = || self.host.run(&[&program, login::COMMAND], Some(&letter), TIMEOUT);
        let mut output = ask()?;
        if NOT_FOUND.contains(&output.status) {
            self.install()?;
            output = ask()?;
        }
        if output.status != 0 {
            let message = format!("`{program}` on `{}` fails: {}", self.host.name(), output.reason());
            return Err(Error::new(Kind::System, message));
        }
        serde_json::from_slice(&output.stdout).map_err(unreadable)
    }

    /// This program where Slurm's commands run. Commands over ssh begin in the home directory.
    fn program_there(&self) -> Result<String> {
        if matches!(self.host, Host::Local) {
            let own = std::env::current_exe();
            let own =
                own.map_err(|error| Error::new(Kind::System, "cannot find this program").because(error))?;
            return Ok(own.to_string_lossy().into_owned());
        }
        let path = match self.node_program()? {
            NodeProgram::Copied(name) => format!("{}/bin/{name}", self.directory()?),
            NodeProgram::At(path) => path,
        };
        Ok(path.strip_prefix("~/").unwrap_or(&path).to_owned())
    }

    /// Starts the hidden command there with words; its streams are used while it runs.
    pub(crate) fn start(&self, words: &[&str], streams: Streams) -> Result<Running> {
        let program = self.program_there()?;
        let command: Vec<&str> =
            [&program, login::COMMAND].into_iter().chain(words.iter().copied()).collect();
        self.host.start(&command, streams, false)
    }

    /// The program that nodes run.
    ///
    /// # Errors
    ///
    /// None may.
    pub(crate) fn node_program(&self) -> Result<NodeProgram> {
        if self.settings.copies_program() {
            return self.program.file_name().map(NodeProgram::Copied);
        }
        self.settings.program().map(NodeProgram::At).ok_or_else(|| {
            let message = "the target says that `jobc` may not run on the cluster";
            Error::new(Kind::Unsupported, message)
                .at_field("slurm.jobc".to_owned())
                .help("leave out `slurm.jobc`, which copies this program there, or use Slurm's own commands")
        })
    }

    /// The words of `srun` for a command beside a task: `jobc on-cluster WORD...`.
    pub(crate) fn step(
        &self,
        job: &str,
        node: &str,
        options: &[&str],
        words: &[&str],
    ) -> Result<Vec<String>> {
        let program = self.node_program()?;
        let find = FindStep { job: job.to_owned(), node: node.to_owned(), program };
        let (job, program) = self.ask_with_program("reach the task", || find.clone())?;
        let mut command = login::srun(&job, &[node], options);
        command.extend([program.as_str(), login::COMMAND].map(str::to_owned));
        command.extend(words.iter().map(|word| (*word).to_owned()));
        Ok(command)
    }

    /// As `ask`, after this program was put on the cluster if it is missing.
    pub(crate) fn ask_with_program<Q: Question + Into<Request>>(
        &self,
        what: &str,
        question: impl Fn() -> Q,
    ) -> Result<Q::Answer> {
        let answer = match &self.host {
            Host::Local => self.login()?.ask(question()),
            Host::Ssh(_) => self.ask_there(question())?,
        };
        if matches!(answer, Err(login::Fault::NoProgram)) && self.settings.copies_program() {
            self.install()?;
            return self.ask(what, question());
        }
        answer.map_err(|fault| fault.error(what))
    }

    /// Sends an image unless the cluster has it; returns where it is below the directory of all runs. Layers that were
    /// sent before are not sent again.
    pub(crate) fn send_image(&self, image: &ImageLayout) -> Result<String> {
        let path = format!("images/{}", image.digest.rsplit(':').next().unwrap_or_default());
        let mut sent = lock(&self.images);
        if !sent.contains(&image.digest) {
            let directory = self.directory()?;
            let (store, target) = (format!("{directory}/store"), format!("{directory}/{path}"));
            self.host.send_tree(&store, &target, &image.tree)?;
            sent.insert(image.digest.clone());
        }
        Ok(path)
    }

    /// The name of the program that scripts run, if it is a copy of this one.
    pub(crate) fn program_of(&self, scripts: &[BatchScript]) -> Result<Option<String>> {
        let path = self.settings.program().filter(|_| self.settings.copies_program()).unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_run =
            !name.is_empty() && scripts.iter().any(|script| script.text.contains(&format!("/{name}")));
        is_run.then(|| self.program.file_name()).transpose()
    }

    /// Puts the program on the cluster under its name.
    fn install(&self) -> Result<()> {
        let directory = self.directory()?;
        let NodeProgram::Copied(name) = self.node_program()? else {
            let path = self.settings.program().unwrap_or_default();
            let message = format!("`{path}` does not run on `{}`", self.host.name());
            return Err(Error::new(Kind::Config, message)
                .at_field("slurm.jobc".to_owned())
                .help("install jobc there, or leave out `slurm.jobc`, which copies this program"));
        };
        let path = format!("{directory}/bin/{name}");
        let installed = self.program.install(&self.host, &format!("{directory}/store"), &path, "slurm.jobc");
        installed.map_err(|error| error.at_field("slurm.jobc".to_owned()))
    }

    /// The files that go with a job; they are read once.
    pub(crate) fn contents(&self, plan: &JobPlan, directory: &Path) -> Result<Arc<Contents>> {
        let volumes = serde_json::to_string(&plan.volumes).unwrap_or_default();
        let key = (directory.to_owned(), volumes);
        let mut known = lock(&self.contents);
        if let Some(contents) = known.get(&key) {
            return Ok(Arc::clone(contents));
        }
        let contents = Arc::new(Contents::read(&self.settings, plan, directory)?);
        known.insert(key, Arc::clone(&contents));
        Ok(contents)
    }
}
