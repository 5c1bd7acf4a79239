//! Variables without a value.

use std::collections::BTreeSet;

use super::super::build::{Inspection, Stage};
use super::super::expand;
use super::super::forms::{Copy, ImageOrStage, Instruction, Kind, MountKind, Source, Word};
use super::super::instruction::is_near;
use super::super::refusal::Refusal;
use super::super::rules::Lint;
use super::super::variables::{PLATFORM, PROXIES};
use super::findings::Findings;

/// Returns the variables of an image by its reference and platform; `None` if they are unknown.
pub type BaseVariables<'a> = &'a dyn Fn(&str, Option<&str>) -> Option<Vec<String>>;

/// Reports variables that instructions of a stage use and that have no value there.
///
/// If the variables of the base image are unknown, only those that the file defines elsewhere are reported, such as by
/// an `ARG` before the first `FROM` that the stage does not repeat, unless the image's name suggests that it sets them.
pub fn undefined_variables(file: &Inspection, base: BaseVariables<'_>) -> Vec<Refusal> {
    let mut findings = Findings::default();
    let mut ends: Vec<Scope> = Vec::new();
    let elsewhere = declared(file);
    for stage in &file.stages {
        let mut scope = match &stage.from {
            ImageOrStage::Stage(below) => match ends.get(*below) {
                // Arguments are only valid in their stage.
                Some(below) => Scope { arguments: BTreeSet::new(), ..below.clone() },
                None => Scope::default(),
            },
            ImageOrStage::Scratch => Scope { known: true, ..Scope::default() },
            ImageOrStage::Image { reference, platform, .. } => {
                let variables = base(reference, platform.as_deref());
                Scope {
                    known: variables.is_some(),
                    environment: variables.unwrap_or_default().into_iter().collect(),
                    arguments: BTreeSet::new(),
                    image: reference.clone(),
                }
            }
        };
        let walk = Walk { file, stage, elsewhere: &elsewhere };
        for instruction in &stage.instructions {
            walk.instruction(instruction, &mut scope, &mut findings);
        }
        ends.push(scope);
    }
    findings.0
}

/// The variables with a value at a line of a stage.
#[derive(Clone, Default)]
struct Scope {
    /// Whether all variables of the base image are known.
    known: bool,
    environment: BTreeSet<String>,
    arguments: BTreeSet<String>,
    /// The base image of all stages.
    image: String,
}

impl Scope {
    fn has(&self, name: &str) -> bool {
        // Every builder sets `PATH`, and passes on proxies that were given.
        name == "PATH"
            || PROXIES.contains(&name)
            || self.environment.contains(name)
            || self.arguments.contains(name)
    }

    /// Whether an image probably sets a variable, as `python` sets `PYTHON_VERSION`.
    fn may_be_of_image(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let repository = self.image.split(['@', ':']).next().unwrap_or_default();
        repository
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| word.len() > 2 && (name.contains(word) || word.contains(&*name)))
    }
}

/// Every argument that the file declares. Not variables of `ENV`, which often extends a value of the base image:
/// `ENV LD_LIBRARY_PATH=/opt/lib:$LD_LIBRARY_PATH`.
fn declared(file: &Inspection) -> BTreeSet<String> {
    file.declared.iter().cloned().chain(PLATFORM.iter().map(|name| (*name).to_owned())).collect()
}

struct Walk<'a> {
    file: &'a Inspection,
    stage: &'a Stage,
    elsewhere: &'a BTreeSet<String>,
}

impl Walk<'_> {
    fn instruction(&self, instruction: &Instruction, scope: &mut Scope, findings: &mut Findings) {
        match &instruction.kind {
            Kind::Arg(args) => {
                for arg in args {
                    if let Some(default) = &arg.default {
                        self.word(default, scope, findings);
                    }
                    scope.arguments.insert(plain(&arg.name));
                }
            }
            Kind::Env(pairs) => {
                for (name, value) in pairs {
                    self.word(name, scope, findings);
                    self.word(value, scope, findings);
                }
                scope.environment.extend(pairs.iter().map(|(name, _)| plain(name)));
            }
            Kind::Copy(copy) | Kind::Add(copy) => {
                for word in copied(copy) {
                    self.word(word, scope, findings);
                }
            }
            Kind::Label(pairs) => {
                for (_, value) in pairs {
                    self.word(value, scope, findings);
                }
            }
            Kind::Workdir(word) | Kind::User(word) | Kind::Stopsignal(word) => {
                self.word(word, scope, findings);
            }
            Kind::Expose(words) | Kind::Volume(words) => {
                for word in words {
                    self.word(word, scope, findings);
                }
            }
            Kind::Run(run) => {
                for mount in &run.mounts {
                    let source = match &mount.kind {
                        MountKind::Bind { source, .. } | MountKind::Cache { source, .. } => source.as_ref(),
                        _ => None,
                    };
                    let words = mount.target.iter().chain(source);
                    words.for_each(|word| self.word(word, scope, findings));
                }
            }
            _ => {}
        }
    }

    fn word(&self, word: &Word, scope: &Scope, findings: &mut Findings) {
        if !word.text.contains('$') {
            return;
        }
        let lookup = |name: &str| scope.has(name).then(String::new);
        let mut names = expand::missing(&word.text, self.file.escape, &lookup);
        names.dedup();
        for name in names {
            if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                self.name(&name, word, scope, findings);
            }
        }
    }

    fn name(&self, name: &str, word: &Word, scope: &Scope, findings: &mut Findings) {
        let declared = self.elsewhere.contains(name);
        let names = || scope.environment.iter().chain(&scope.arguments);
        let near =
            (name.len() > 3 && !declared).then(|| names().find(|known| is_near(known, name))).flatten();
        let certain = scope.known || (declared || near.is_some()) && !scope.may_be_of_image(name);
        if !certain {
            return;
        }
        let global = self.file.globals.iter().any(|global| declares(global, name));
        let later = self.stage.instructions.iter().any(|other| declares(other, name));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if later => format!("put `ARG {name}` above this line"),
            None if global || PLATFORM.contains(&name) => {
                format!(
                    "write `ARG {name}` in this stage too: arguments from outside a stage have no value in it"
                )
            }
            None if declared => {
                format!("write `ARG {name}` in this stage too: each stage has its own variables")
            }
            None => format!("define it with `ARG {name}=…` or `ENV {name}=…`, or write `${{{name}:-}}`"),
        };
        findings.add(
            Lint::UndefinedVar,
            word.span.clone(),
            format!("`${name}` has no value in this stage"),
            help,
        );
    }
}

fn declares(instruction: &Instruction, name: &str) -> bool {
    match &instruction.kind {
        Kind::Arg(args) => args.iter().any(|arg| arg.name.text == name),
        _ => false,
    }
}

/// The words of a copy in which variables are expanded.
fn copied(copy: &Copy) -> Vec<&Word> {
    let sources = copy.sources.iter().filter_map(|source| match source {
        Source::Path(word) => Some(word),
        Source::Heredoc(_) => None,
    });
    let flags = copy.chown.iter().chain(&copy.chmod).chain(&copy.exclude);
    sources.chain([&copy.target]).chain(flags).collect()
}

/// A name without quotes.
fn plain(word: &Word) -> String {
    word.text.trim_matches(['"', '\'']).to_owned()
}
