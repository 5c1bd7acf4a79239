//! A stage while it is built: its base, then one instruction after the other.
//!
//! An instruction that changes files is a step with a [`Key`]: its result is taken from the cache, or created on a
//! miss. Everything else changes only settings and is done every time.

mod base;
mod copy;
mod mounts;
mod remote;
mod run;
mod trust;
mod workdir;

use std::path::PathBuf;

use super::cache::{Key, Layer};
use super::files::CopyRequest;
use super::work::StepDirectory;
use super::{BuildError, Builder, Failure, Request, StageResult, layer, worker};
use crate::config::History;
use crate::progress::Progress;
use jobc_dockerfile::ignore::Ignore;
use jobc_dockerfile::{Build, Instruction, Kind, Refusal, Span, Stage as Written, Variables, ports};
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind as ErrorKind};

/// A stage that is being built.
pub(super) struct Stage<'a> {
    builder: &'a Builder<'a>,
    written: &'a Written,
    variables: Variables<'a>,
    /// The result so far.
    result: StageResult,
    /// The number of the current step, and the number of steps.
    step: usize,
    steps: usize,
}

/// The error of an instruction, before its position is known.
pub(super) enum StepError {
    /// The instruction is refused; the refusal has its own span.
    Refused(Refusal),
    /// Carrying it out.
    Failed(Error),
    /// A command: what went wrong, and its last lines.
    Command(Error, Vec<Vec<u8>>),
}

impl From<Refusal> for StepError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for StepError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

type StepOutcome<T> = std::result::Result<T, StepError>;

impl StepError {
    fn at(self, span: &Span) -> BuildError {
        let (error, output) = match self {
            Self::Refused(refusal) => return BuildError::Refused(vec![refusal]),
            Self::Failed(error) => (error, Vec::new()),
            Self::Command(error, output) => (error, output),
        };
        BuildError::Failed(Box::new(Failure { span: Some(span.clone()), error, output }))
    }
}

/// Builds a stage.
pub(super) fn build(builder: &Builder<'_>, index: usize) -> std::result::Result<StageResult, BuildError> {
    let written = &builder.build.stages[index];
    let (done, triggers) = base::initial_result(builder, written).map_err(|wrong| wrong.at(&written.span))?;
    let triggers = triggers
        .iter()
        .map(|text| trigger(text, builder.build, index))
        .collect::<std::result::Result<Vec<Instruction>, Refusal>>()
        .map_err(|refusal| BuildError::Refused(vec![refusal]))?;
    let environment = done.settings.execution.env.iter().map(|variable| {
        let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
        (name.to_owned(), value.to_owned())
    });
    let variables = Variables::new(builder.build, environment.collect());
    let steps = 1 + triggers.len() + written.instructions.len();
    let mut stage = Stage { builder, written, variables, result: done, step: 1, steps };
    stage.report_step(&format!("FROM {}", base::name(builder.build, &written.from)), false);
    for instruction in &triggers {
        stage.carry_out(instruction).map_err(|wrong| wrong.at(&instruction.span))?;
    }
    for instruction in &written.instructions {
        stage.carry_out(instruction).map_err(|wrong| wrong.at(&instruction.span))?;
    }
    Ok(stage.result)
}

/// An ONBUILD instruction of a base. Its location is the line that names the base.
fn trigger(text: &str, build: &Build, stage: usize) -> std::result::Result<Instruction, Refusal> {
    jobc_dockerfile::trigger(text, build, stage).map_err(|refusal| {
        let message =
            format!("the ONBUILD instruction `{text}` of the base image is refused: {}", refusal.message);
        Refusal { message, ..refusal }
    })
}

impl Stage<'_> {
    fn carry_out(&mut self, instruction: &Instruction) -> StepOutcome<()> {
        if self.builder.is_canceled() {
            return Err(canceled().into());
        }
        self.step += 1;
        let text = &instruction.text;
        match &instruction.kind {
            Kind::Run(run) => return self.run(run, &instruction.span, text),
            Kind::Copy(copy) => return self.copy(copy, false, text),
            Kind::Add(copy) => return self.copy(copy, true, text),
            Kind::Workdir(word) => return self.workdir(word, text),
            other => {
                self.report_step(text, false);
                self.set(other)?;
            }
        }
        self.add_history(text, true);
        Ok(())
    }

    /// Runs an instruction that changes nothing but settings.
    fn set(&mut self, kind: &Kind) -> StepOutcome<()> {
        let variables = &mut self.variables;
        let settings = &mut self.result.settings;
        match kind {
            Kind::Arg(args) => variables.declare(args)?,
            Kind::Env(pairs) => {
                for (name, value) in variables.set(pairs)? {
                    settings.env(&name, &value);
                }
            }
            Kind::Label(pairs) => {
                for (name, value) in variables.pairs(pairs)? {
                    settings.label(name, value);
                }
            }
            Kind::User(word) => settings.user(variables.expand(word)?),
            Kind::Expose(words) => {
                for word in words {
                    for text in variables.expand_words(word)? {
                        let ports = ports(&text).map_err(|why| Refusal::new(word.span.clone(), why))?;
                        settings.expose(ports);
                    }
                }
            }
            Kind::Volume(words) => {
                for word in words {
                    settings.volume(variables.expand(word)?);
                }
            }
            Kind::Entrypoint(command) => settings.entrypoint(command),
            Kind::Cmd(command) => settings.cmd(command),
            Kind::Shell(words) => settings.shell(words.clone()),
            Kind::Stopsignal(word) => settings.stop_signal(variables.expand(word)?),
            Kind::Healthcheck(check) => settings.healthcheck(check),
            Kind::Onbuild(text) => settings.on_build(text.clone()),
            Kind::Maintainer(name) => settings.author = Some(name.clone()),
            Kind::Run(_) | Kind::Copy(_) | Kind::Add(_) | Kind::Workdir(_) => {}
        }
        Ok(())
    }

    /// A step's key, derived from the previous steps.
    fn key(&self, kind: &str) -> Key {
        let epoch = self.builder.request.epoch.map(|epoch| epoch.to_string()).unwrap_or_default();
        Key::of(kind).with(self.result.key.hex()).with(epoch).with(self.builder.request.compression.name())
    }

    /// Has a step's result from the cache, or makes it: `work` changes the files of the step's upper directory, over
    /// the directories of the layers so far.
    fn layer(
        &mut self,
        key: Digest,
        text: &str,
        work: impl FnOnce(&mut Self, &StepDirectory, Vec<PathBuf>) -> StepOutcome<()>,
    ) -> StepOutcome<()> {
        self.builder.request.extras.note_step(&key);
        let made = if let Some(known) = self.builder.cache.get(&key) {
            self.report_step(text, true);
            known
        } else {
            let _permit = self.builder.permits.acquire();
            self.report_step(text, false);
            let lowers = self.builder.directories(&self.result.layers)?;
            let step = self.builder.work()?.step(lowers.last())?;
            let below = lowers.last().cloned();
            work(self, &step, lowers)?;
            let Request { epoch, compression, .. } = *self.builder.request;
            let upper = step.path().join("upper");
            let made = layer::create_layer(
                self.builder.store,
                &upper,
                below.as_deref(),
                epoch,
                compression,
                &self.builder.canceled,
            )?;
            self.builder.cache.put(&key, &made)?;
            if let Some(layer) = &made.layer {
                self.builder.keep_step(&layer.diff_id, step);
            }
            made
        };
        self.result.key = key;
        self.result.created = self.result.created.max(Some(made.created));
        let changed = made.layer.is_some();
        self.result.layers.extend(made.layer);
        self.add_history(text, !changed);
        Ok(())
    }

    /// Has files put into a tree.
    fn copy_files(&self, copy: &CopyRequest) -> StepOutcome<()> {
        if worker::copy(copy, &self.builder.canceled)?.owners_lost {
            self.builder.report_owners_lost();
        }
        Ok(())
    }

    fn report_step(&self, text: &str, cached: bool) {
        (self.builder.progress)(Progress::Step {
            number: self.step,
            of: self.steps,
            stage: self.name(),
            text: text.to_owned(),
            cached,
        });
    }

    /// The stage's name in messages.
    fn name(&self) -> String {
        self.written.name.clone().unwrap_or_else(|| self.written.number.to_string())
    }

    /// Adds a line to the image's history.
    fn add_history(&mut self, text: &str, empty_layer: bool) {
        self.result.history.push(History {
            created: self.result.created.map(super::time),
            created_by: Some(text.to_owned()),
            comment: Some("jobc".to_owned()),
            empty_layer,
            ..History::default()
        });
    }
}

/// The build was canceled.
pub(super) fn canceled() -> Error {
    Error::new(ErrorKind::State, "the build was canceled")
}

/// Layers of a stage and their key, for others that take from it.
pub(super) struct FileOrigin {
    /// The layers, lowest first.
    pub(super) layers: Vec<Layer>,
    /// The part of the cache key for them.
    pub(super) key: Digest,
    /// A directory of the host instead.
    pub(super) directory: Option<(PathBuf, Ignore)>,
}
