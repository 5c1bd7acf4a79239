//! The commands of this program that answer requests.

use std::time::Duration;

use hyper::StatusCode;
use jobc_process::{Finished, OwnCommand};
use serde_json::Value;

use crate::limits::Limits;
use crate::problem::Problem;
use crate::workspace::{Base, Workspace};

/// For commands that only compile, or read what is on this host.
const SHORT: Duration = Duration::from_mins(1);
/// For commands that ask a cluster.
const CLUSTER: Duration = Duration::from_mins(2);
/// For commands that may build and send images first.
const START: Duration = Duration::from_hours(1);

/// A command before it runs.
#[derive(Clone, Debug)]
pub(crate) struct Own(OwnCommand);

impl Own {
    /// A command that compiles what may not be trusted: it reads what is open, and few variables.
    pub(crate) fn compile(base: &Base, word: &str) -> Self {
        Self(OwnCommand {
            words: vec![word.to_owned()],
            stdin: vec![],
            directory: base.directory.clone(),
            confined_to: base.permitted.clone(),
            has_environment: false,
            timeout: SHORT,
        })
    }

    /// A command that starts jobs: its job file reads what is open.
    pub(crate) fn start(base: &Base, word: &str) -> Self {
        let mut own = Self::compile(base, word);
        own.0.has_environment = true;
        own.0.timeout = START;
        own
    }

    /// A command about jobs, here or at targets.
    pub(crate) fn about(workspace: &Workspace, word: &str) -> Self {
        Self(OwnCommand {
            words: vec![word.to_owned()],
            stdin: vec![],
            directory: workspace.first().to_owned(),
            confined_to: vec![],
            has_environment: true,
            timeout: CLUSTER,
        })
    }

    pub(crate) fn word(mut self, word: impl Into<String>) -> Self {
        self.0.words.push(word.into());
        self
    }

    pub(crate) fn words(mut self, words: &[&str]) -> Self {
        self.0.words.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// An option with a value, which is never taken for another option.
    pub(crate) fn option(self, name: &str, value: impl std::fmt::Display) -> Self {
        self.word(format!("{name}={value}"))
    }

    pub(crate) fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.0.stdin = text.into();
        self
    }

    /// The command line, for a process that is not waited for.
    pub(crate) fn command(&self) -> &OwnCommand {
        &self.0
    }

    /// Whether its words can be those of a process.
    ///
    /// # Errors
    /// One has a NUL.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if self.0.words.iter().any(|word| word.contains('\0')) {
            return Err(Problem::bad_request("a value has the character NUL"));
        }
        Ok(())
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// It cannot run, or takes too long.
    pub(crate) async fn run(self, limits: &Limits) -> Result<Finished, Problem> {
        self.check()?;
        let _slot = limits.command().await?;
        let name = self.0.words.first().cloned().unwrap_or_default();
        jobc_process::run(self.0).await.map_err(|why| {
            let is_late = why.starts_with("timed out");
            let status = if is_late { StatusCode::GATEWAY_TIMEOUT } else { StatusCode::SERVICE_UNAVAILABLE };
            Problem::new(status, format!("`jobc {name}`: {why}"))
        })
    }

    /// Runs it, and reads its output as JSON.
    ///
    /// # Errors
    /// It fails with another code than those, or prints something else.
    pub(crate) async fn json(self, limits: &Limits, success: &[i32]) -> Result<Value, Problem> {
        let finished = self.run(limits).await?;
        document(&finished, success)
    }
}

/// What a command has printed, as JSON.
///
/// # Errors
/// It failed, or printed something else.
pub(crate) fn document(finished: &Finished, success: &[i32]) -> Result<Value, Problem> {
    let is_success = finished.code.is_some_and(|code| code == 0 || success.contains(&code));
    if !is_success {
        return Err(Problem::of_command(finished));
    }
    serde_json::from_str(&finished.stdout).map_err(|_| Problem::of_command(finished))
}
