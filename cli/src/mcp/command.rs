//! The command that a tool runs.

use std::time::Duration;

use camino::Utf8PathBuf;
use jobc_process::OwnCommand;

use super::parameter::Arguments;
use super::root::Root;

/// A command line of this program, and how its output is returned.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// The words after the program.
    pub words: Vec<String>,
    pub stdin: String,
    /// The working directory.
    pub directory: Utf8PathBuf,
    pub output: OutputKind,
    /// Exit codes besides 0 with which the tool has not failed.
    pub success: &'static [i32],
    /// Whether it reads files below the root directory only, with few variables of the environment.
    pub is_confined: bool,
    pub timeout: Duration,
}

/// What a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputKind {
    /// A JSON object with a list of findings, of which the first are returned.
    Findings,
    /// A JSON object.
    Object,
    /// The JSON object of a job, returned below the key `job` without its plan.
    Job,
    /// Another JSON value, returned as an object with it below this key.
    Value(&'static str),
    /// Text whose beginning matters most.
    Text,
    /// Text whose end matters most.
    Tail,
}

/// For commands that only compile.
const COMPILE_TIMEOUT: Duration = Duration::from_mins(1);

impl Command {
    /// A command that compiles, and returns a text.
    pub(super) fn new(root: &Root, word: &str) -> Self {
        Self {
            words: vec![word.to_owned()],
            stdin: String::new(),
            directory: root.path().to_owned(),
            output: OutputKind::Text,
            success: &[],
            is_confined: true,
            timeout: COMPILE_TIMEOUT,
        }
    }

    /// A command about jobs on this host and elsewhere: it reads what the user can read.
    pub(super) fn unconfined(root: &Root, word: &str, timeout: Duration) -> Self {
        Self { is_confined: false, timeout, ..Self::new(root, word) }
    }

    /// The process that runs it.
    pub(super) fn own(&self, root: &Root) -> OwnCommand {
        OwnCommand {
            words: self.words.clone(),
            stdin: self.stdin.clone().into_bytes(),
            directory: self.directory.clone(),
            confined_to: if self.is_confined { vec![root.path().to_owned()] } else { vec![] },
            has_environment: !self.is_confined,
            timeout: self.timeout,
        }
    }

    pub(super) fn word(mut self, word: impl Into<String>) -> Self {
        self.words.push(word.into());
        self
    }

    /// Adds an option with a value; nothing without one. The value is never taken for another option.
    pub(super) fn option(mut self, name: &str, value: Option<impl AsRef<str>>) -> Self {
        self.words.extend(value.map(|value| format!("{name}={}", value.as_ref())));
        self
    }

    pub(super) fn flag(mut self, name: &str, is_given: bool) -> Self {
        self.words.extend(is_given.then(|| name.to_owned()));
        self
    }

    pub(super) fn output(self, output: OutputKind) -> Self {
        Self { output, ..self }
    }

    /// Adds the arguments that all tools about a job file have: `text` or `job`, and how it is compiled. `job` is the
    /// option for the job file where it is not an argument.
    ///
    /// # Errors
    /// A file outside of the root directory, or both a file and a text.
    pub(super) fn with_job(
        mut self,
        arguments: &Arguments,
        root: &Root,
        job: Option<&str>,
    ) -> Result<Self, String> {
        self = self.with_settings(arguments, root)?;
        let word = match (arguments.text("job"), arguments.text("text")) {
            (Some(_), Some(_)) => return Err("give either `job` or `text`".to_owned()),
            (None, Some(text)) => {
                text.clone_into(&mut self.stdin);
                let directory = arguments.text("directory").map(|path| root.existing(path)).transpose()?;
                self.directory = root.path().join(directory.unwrap_or_default());
                if !self.directory.is_dir() {
                    return Err("`directory` must be a directory".to_owned());
                }
                Some("-".to_owned())
            }
            (given, None) => {
                if arguments.text("directory").is_some() {
                    return Err("`directory` is for a job given as `text`".to_owned());
                }
                given.map(|path| root.existing(path)).transpose()?
            }
        };
        let Some(word) = word else { return Ok(self) };
        Ok(match job {
            Some(option) => self.option(option, Some(word)),
            None => self.word(word),
        })
    }

    /// Adds how a job is compiled: the targets file, targets and parameters.
    ///
    /// # Errors
    /// A file outside of the root directory.
    pub(super) fn with_settings(mut self, arguments: &Arguments, root: &Root) -> Result<Self, String> {
        let targets = arguments.text("targets").map(|path| root.existing(path)).transpose()?;
        // A job given as text may be in another directory.
        self = self.option("--targets", targets.map(|path| root.path().join(path).into_string()));
        for target in arguments.words("target") {
            self = self.option("--target", Some(target));
        }
        for pair in arguments.pairs("set") {
            self = self.option("--set", Some(pair));
        }
        Ok(self.flag("--allow-lossy", arguments.flag("allow_lossy")))
    }
}
