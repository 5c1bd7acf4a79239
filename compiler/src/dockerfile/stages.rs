//! The stages of a Dockerfile with their variables filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use indexmap::IndexMap;
use parse_dockerfile as read;
use read::Instruction;

use super::Facts;
use super::expand::{Expanded, expand, pairs, unquoted, words};

/// Arguments the builder sets itself, whose values depend on where it runs.
const PLATFORM: &[&str] = &[
    "TARGETPLATFORM",
    "TARGETOS",
    "TARGETARCH",
    "TARGETVARIANT",
    "BUILDPLATFORM",
    "BUILDOS",
    "BUILDARCH",
    "BUILDVARIANT",
];

/// A Dockerfile's stages.
pub(super) struct Stages<'f, 'a> {
    pub(super) list: Vec<Stage<'f, 'a>>,
    /// Every name that some `ARG` declares.
    pub(super) declared: BTreeSet<String>,
}

/// What a stage stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// An earlier stage, by number.
    Stage(usize),
    /// An image.
    Image(String),
    /// An image whose name has variables that cannot be filled in; those without a value.
    Hidden(Vec<String>),
}

/// One stage.
pub(super) struct Stage<'f, 'a> {
    pub(super) name: Option<String>,
    pub(super) base: Base,
    /// Where `FROM` names the base.
    pub(super) at: Range<usize>,
    pub(super) instructions: Vec<&'f Instruction<'a>>,
    /// What the stage itself says, over what its base stage says.
    facts: Facts,
    /// Variables as the stage ends, for paths.
    pub(super) variables: BTreeMap<String, String>,
}

/// Walks the file once, in order, as a builder would.
pub(super) fn read<'f, 'a>(
    file: &'f read::Dockerfile<'a>,
    given: &IndexMap<String, String>,
) -> Stages<'f, 'a> {
    let mut stages = Stages { list: vec![], declared: BTreeSet::new() };
    let mut global: BTreeMap<String, Option<String>> = BTreeMap::new();
    for instruction in &file.instructions {
        if let Instruction::From(from) = instruction {
            let stage = stages.begin(from, &global);
            stages.list.push(stage);
        } else if let Some(stage) = stages.list.last_mut() {
            stage.instructions.push(instruction);
            stage.take(instruction, &global, given, &mut stages.declared);
        } else if let Instruction::Arg(arg) = instruction {
            for (name, default) in arguments(&arg.arguments.value) {
                let known = |name: &str| global.get(name).cloned().flatten();
                let default = default.map(|value| expand(&value, &known).text);
                global.insert(name.clone(), given.get(&name).cloned().or(default));
                stages.declared.insert(name);
            }
        }
    }
    stages
}

/// `NAME[=DEFAULT] …` of `ARG`.
fn arguments(text: &str) -> Vec<(String, Option<String>)> {
    words(text)
        .into_iter()
        .map(|word| match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word, None),
        })
        .collect()
}

impl<'f, 'a> Stages<'f, 'a> {
    /// Whether a name or number means a stage before this one.
    pub(super) fn find(&self, name: &str, before: usize) -> Option<usize> {
        let named = |stage: &Stage<'_, '_>| {
            stage.name.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(name))
        };
        self.list[..before]
            .iter()
            .rposition(named)
            .or_else(|| name.parse().ok().filter(|&number| number < before))
    }

    /// The stage to build.
    pub(super) fn choose(&self, target: Option<&str>) -> Option<usize> {
        match target {
            None => self.list.len().checked_sub(1),
            Some(name) => self.find(name, self.list.len()),
        }
    }

    /// What a stage tells, with what it stands on in the end.
    pub(super) fn facts(&self, stage: usize) -> Facts {
        let mut facts = self.list[stage].facts.clone();
        let mut number = stage;
        while let Base::Stage(below) = self.list[number].base {
            number = below;
        }
        if let Base::Image(image) = &self.list[number].base {
            facts.base = Some(image.clone());
        }
        facts
    }

    fn begin(
        &self,
        from: &read::FromInstruction<'_>,
        global: &BTreeMap<String, Option<String>>,
    ) -> Stage<'f, 'a> {
        let known = |name: &str| global.get(name).cloned().flatten();
        let expanded = expand(&unquoted(&from.image.value), &known);
        let whole = expanded.is_whole();
        let image = expanded.text;
        let base = if !whole {
            Base::Hidden(expanded.missing)
        } else if let Some(number) = self.list.iter().rposition(|stage| stage.name.as_deref() == Some(&image))
        {
            Base::Stage(number)
        } else {
            Base::Image(image)
        };
        let facts = match base {
            Base::Stage(number) => self.list[number].facts.clone(),
            Base::Image(_) | Base::Hidden(_) => Facts::default(),
        };
        // A stage inherits variables of the environment, but no arguments.
        let variables = facts.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Stage {
            name: from.as_.as_ref().map(|(_, name)| name.value.clone().into_owned()),
            base,
            at: from.image.span.clone(),
            instructions: vec![],
            facts,
            variables,
        }
    }
}

/// Whether a variable's value depends on where the builder runs.
pub(super) fn is_platform(name: &str) -> bool {
    PLATFORM.contains(&name)
}

impl Stage<'_, '_> {
    /// Fills variables in; what is not known stays as it is written.
    pub(super) fn fill(&self, text: &str) -> Expanded {
        expand(text, &|name| self.variables.get(name).cloned())
    }

    fn take(
        &mut self,
        instruction: &Instruction<'_>,
        global: &BTreeMap<String, Option<String>>,
        given: &IndexMap<String, String>,
        declared: &mut BTreeSet<String>,
    ) {
        match instruction {
            Instruction::Arg(arg) => {
                for (name, default) in arguments(&arg.arguments.value) {
                    let default = default.map(|value| self.fill(&value).text);
                    let outer = || global.get(&name).cloned().flatten();
                    let value = given.get(&name).cloned().or(default).or_else(outer);
                    // A variable of the environment wins over an argument of its name.
                    if let Some(value) = value.filter(|_| !self.facts.env.contains_key(&name)) {
                        self.variables.insert(name.clone(), value);
                    }
                    declared.insert(name);
                }
            }
            Instruction::Env(env) => {
                // All values of one instruction see what was set before it.
                let found: Vec<_> = pairs(&env.arguments.value)
                    .into_iter()
                    .map(|(name, value)| (name, self.fill(&value).text))
                    .collect();
                for (name, value) in found {
                    self.variables.insert(name.clone(), value.clone());
                    self.facts.env.insert(name, value);
                }
            }
            Instruction::User(user) => {
                self.facts.user = Some(self.fill(&unquoted(&user.arguments.value)).text);
            }
            Instruction::Workdir(folder) => {
                let folder = self.fill(&unquoted(&folder.arguments.value)).text;
                let joined = match &self.facts.workdir {
                    _ if folder.starts_with(['/', '$']) => folder,
                    Some(before) => format!("{}/{folder}", before.trim_end_matches('/')),
                    // The base image's own folder is not known.
                    None if matches!(self.base, Base::Image(ref image) if image == "scratch") => {
                        format!("/{folder}")
                    }
                    None => folder,
                };
                self.facts.workdir = Some(joined);
            }
            Instruction::Entrypoint(entrypoint) => {
                self.facts.entrypoint = Some(argv(&entrypoint.arguments));
                // As a builder does: a CMD meant for another ENTRYPOINT is dropped.
                self.facts.cmd = None;
            }
            Instruction::Cmd(cmd) => self.facts.cmd = Some(argv(&cmd.arguments)),
            Instruction::Expose(expose) => {
                let ports = expose.arguments.iter().map(|port| self.fill(&port.value).text);
                let ports: Vec<String> = ports.collect();
                self.facts.ports.extend(ports);
            }
            _ => {}
        }
    }
}

fn argv(command: &read::Command<'_>) -> Vec<String> {
    match command {
        read::Command::Exec(items) => {
            items.value.iter().map(|item| item.value.clone().into_owned()).collect()
        }
        read::Command::Shell(text) => vec!["/bin/sh".into(), "-c".into(), text.value.to_owned()],
        _ => vec![],
    }
}
