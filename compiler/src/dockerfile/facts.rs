//! Facts about the image that a Dockerfile builds.

use indexmap::IndexMap;
use jobc_dockerfile::{
    Command, ImageOrStage, Inspection, Instruction, Kind, Refusal, Stage, Variables, Word,
};

/// Facts about the image that a Dockerfile builds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The final base image of the built stage; `None` if it depends on an unknown variable.
    pub base: Option<String>,
    /// `ENV` values of the built stage and the stages it is based on, with known variables expanded.
    pub env: IndexMap<String, String>,
    /// `USER`.
    pub user: Option<String>,
    /// `WORKDIR`, with relative paths joined.
    pub workdir: Option<String>,
    /// `ENTRYPOINT` as arguments; the shell form includes the shell.
    pub entrypoint: Option<Vec<String>>,
    /// `CMD` in the same form.
    pub cmd: Option<Vec<String>>,
    /// `EXPOSE`, as written.
    pub ports: Vec<String>,
    /// Images that the file names and `jobc.lock` pins, each with its digest.
    pub locked: IndexMap<String, String>,
}

/// The stages of a file with their facts, and the variables at each instruction.
pub(super) struct Stages<'f> {
    pub(super) file: &'f Inspection,
    facts: Vec<Facts>,
    /// The sources of each copy from the context, expanded, with their source text.
    pub(super) copied: Vec<(String, &'f Word)>,
}

impl<'f> Stages<'f> {
    /// Walks the file once, in order, as a builder does. Variables of the base image stay as written.
    pub(super) fn read(file: &'f Inspection) -> Self {
        let mut stages = Self { file, facts: Vec::with_capacity(file.stages.len()), copied: Vec::new() };
        for stage in &file.stages {
            let facts = stages.of(stage);
            stages.facts.push(facts);
        }
        stages
    }

    /// Facts about a stage, with its final base image.
    pub(super) fn facts(&self, stage: usize) -> Facts {
        self.facts.get(stage).cloned().unwrap_or_default()
    }

    fn of(&mut self, stage: &'f Stage) -> Facts {
        let mut facts = match &stage.from {
            ImageOrStage::Stage(below) => self.facts(*below),
            ImageOrStage::Scratch => Facts { base: Some("scratch".to_owned()), ..Facts::default() },
            ImageOrStage::Image { reference, .. } => {
                Facts { base: (!stage.by_platform).then(|| reference.clone()), ..Facts::default() }
            }
        };
        // A stage inherits environment variables, but no build arguments.
        let mut variables = Variables::without_base(self.file, facts.env.clone());
        for instruction in &stage.instructions {
            // Values that cannot be expanded have been reported where visible; otherwise the builder reports them.
            let _ = self.take(instruction, &mut variables, &mut facts);
        }
        facts.env.clone_from(variables.env());
        facts
    }

    fn take(
        &mut self,
        instruction: &'f Instruction,
        variables: &mut Variables<'_>,
        facts: &mut Facts,
    ) -> Result<(), Refusal> {
        match &instruction.kind {
            Kind::Arg(args) => variables.declare(args)?,
            Kind::Env(pairs) => drop(variables.set(pairs)?),
            Kind::User(user) => facts.user = Some(variables.expand(user)?),
            Kind::Workdir(directory) => {
                let directory = variables.expand(directory)?;
                let joined = match &facts.workdir {
                    _ if directory.starts_with(['/', '$']) => directory,
                    Some(before) => format!("{}/{directory}", before.trim_end_matches('/')),
                    // The base image's working directory is unknown.
                    None if facts.base.as_deref() == Some("scratch") => format!("/{directory}"),
                    None => directory,
                };
                facts.workdir = Some(joined);
            }
            Kind::Entrypoint(entrypoint) => {
                facts.entrypoint = Some(argv(entrypoint));
                // As in a builder: a new ENTRYPOINT discards the CMD of the base image.
                facts.cmd = None;
            }
            Kind::Cmd(cmd) => facts.cmd = Some(argv(cmd)),
            Kind::Expose(words) => {
                for word in words {
                    facts.ports.extend(variables.expand_words(word)?);
                }
            }
            Kind::Copy(copy) | Kind::Add(copy) if copy.from.is_none() => {
                for source in &copy.sources {
                    if let jobc_dockerfile::Source::Path(word) = source {
                        // The linter treats an unclosed quote as part of the path, and reports it.
                        let text = variables.expand(word).unwrap_or_else(|_| word.text.clone());
                        self.copied.push((text, word));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn argv(command: &Command) -> Vec<String> {
    match command {
        Command::Exec(arguments) => arguments.clone(),
        Command::Shell(text) => vec!["/bin/sh".into(), "-c".into(), text.clone()],
    }
}
