//! The stages of a file, and those that the target needs.

use std::cell::RefCell;

use indexmap::IndexMap;
use jobc_schema::Reference;

use super::arguments::Arguments;
use super::build::{Build, Inspection, Options, Stage};
use super::forms::{Arg, ImageOrStage, Instruction, Kind, Word};
use super::instruction::{self, Problems, Scope, StageRecord};
use super::line::{Line, Part};
use super::lines;
use super::refusal::{Refusal, Rule};
use super::rules::Lint;
use super::variables::{PLATFORM, PROXIES};
use super::{expand, lint, split};

/// Parses a Dockerfile.
pub(super) fn read(text: &str, options: &Options<'_>) -> Inspection {
    let file = lines::read(text);
    let escape = file.directives.escape;
    let mut problems = Problems { wrong: file.refusals, remarks: file.remarks, unsupported: Vec::new() };
    let mut reader = Reader {
        escape,
        arguments: Arguments { given: options.args.iter().cloned().collect(), globals: platforms(options) },
        names: names(&file.lines),
        declared: Vec::new(),
        globals: Vec::new(),
        by_platform: PLATFORM.iter().map(|name| (*name).to_owned()).collect(),
        stages: Vec::new(),
        unsupported: Vec::new(),
    };
    reader.by_platform.retain(|name| !options.args.iter().any(|(given, _)| given == name));
    for line in &file.lines {
        reader.line(line, &mut problems);
    }
    if reader.stages.is_empty() && problems.wrong.is_empty() {
        problems.wrong(0..0, "there is no `FROM`, so there is nothing to build", "begin with `FROM image`");
    }
    let target = reader.target(options, &mut problems);
    reader.unused(options, &mut problems);
    let epoch = reader.epoch(&mut problems);
    let Reader { arguments, declared, globals, stages, unsupported, .. } = reader;
    let needed = target.map(|target| needed(&stages, target));
    // A stage that is not built may use unsupported features.
    let weighs = |stage: usize| needed.as_ref().is_none_or(|needed| needed[stage]);
    let Problems { wrong: mut refusals, remarks, .. } = problems;
    refusals.extend(unsupported.into_iter().filter(|(stage, _)| weighs(*stage)).map(|(_, refusal)| refusal));
    let mut checks = file.directives.checks.clone();
    checks.read_comments(text, &file.lines);
    let mut read = Inspection {
        stages,
        globals,
        declared,
        escape,
        arguments,
        checks,
        target,
        build: None,
        refusals,
        remarks: Vec::new(),
    };
    let found = remarks.into_iter().chain(lint::check(text, &file.lines, &read)).collect();
    let (errors, remarks) = read.checks.sort(found);
    read.refusals.extend(errors);
    read.remarks = remarks;
    for list in [&mut read.refusals, &mut read.remarks] {
        list.sort_by_key(|refusal| (refusal.span.start, refusal.span.end));
    }
    if let (Some(target), Some(needed)) = (target, needed)
        && read.refusals.is_empty()
    {
        let (stages, target) = prune(read.stages.clone(), &needed, target);
        let arguments = read.arguments.clone();
        read.build = Some(Build { stages, target, escape, arguments, remarks: read.remarks.clone(), epoch });
    }
    read
}

struct Reader {
    escape: char,
    arguments: Arguments,
    /// The names of all stages, in order.
    names: Vec<Option<String>>,
    /// Every `ARG`.
    declared: Vec<String>,
    globals: Vec<Instruction>,
    /// Variables before the first `FROM` whose values depend on the platform.
    by_platform: Vec<String>,
    stages: Vec<Stage>,
    /// Unsupported features, by stage.
    unsupported: Vec<(usize, Refusal)>,
}

impl Reader {
    fn line(&mut self, line: &Line, problems: &mut Problems) {
        let (keyword, rest) = line.part().split_first();
        let name = keyword.text().to_ascii_uppercase();
        if name == "FROM" {
            let stage = self.from(line, keyword, rest, problems);
            self.stages.push(stage);
            return;
        }
        let current = self.stages.len().checked_sub(1);
        let earlier: Vec<StageRecord> = self.earlier(current.unwrap_or(0));
        let own = current.and_then(|current| self.names[current].as_deref());
        let later: Vec<String> =
            self.names.iter().skip(self.stages.len()).map(|name| name.clone().unwrap_or_default()).collect();
        let mut scope =
            Scope { escape: self.escape, earlier: &earlier, own, later: &later, deferred: false, problems };
        let read = instruction::read(line, &mut scope);
        let unsupported = problems.unsupported.drain(..).map(|refusal| (current.unwrap_or(0), refusal));
        self.unsupported.extend(unsupported);
        let Some(read) = read else { return };
        if let Kind::Arg(args) = &read.kind {
            self.declared.extend(args.iter().map(|arg| arg.name.text.clone()));
        }
        let Some(current) = current else {
            match &read.kind {
                Kind::Arg(args) => {
                    for arg in args {
                        self.global(arg, problems);
                    }
                    self.globals.push(read);
                }
                _ => problems.wrong(
                    keyword.span(),
                    format!("`{name}` is before the first `FROM`"),
                    "only `ARG` is allowed there",
                ),
            }
            return;
        };
        self.stages[current].instructions.push(read);
    }

    /// The previous stages of one.
    fn earlier(&self, before: usize) -> Vec<StageRecord> {
        let stage = |(number, name): (usize, &Option<String>)| StageRecord {
            name: name.clone(),
            number,
            index: number,
        };
        self.names.iter().take(before).enumerate().map(stage).collect()
    }

    /// `ARG` before the first `FROM`.
    fn global(&mut self, arg: &Arg, problems: &mut Problems) {
        let name = arg.name.text.clone();
        let mut used = Vec::new();
        let value = match (self.arguments.given.get(&name), &arg.default) {
            (Some(given), _) => Some(given.clone()),
            (None, Some(default)) => self.expand(default, &mut used, problems),
            (None, None) => None,
        };
        let by_platform = used.iter().any(|used| self.by_platform.contains(used));
        if by_platform {
            self.by_platform.push(name.clone());
        } else if value.is_some() {
            self.by_platform.retain(|known| *known != name);
        }
        if let Some(value) = value {
            self.arguments.globals.insert(name, value);
        }
    }

    /// `SOURCE_DATE_EPOCH`: seconds since 1970. BuildKit also accepts the name of a stage, and `context`.
    fn epoch(&self, problems: &mut Problems) -> Option<i64> {
        const NAME: &str = "SOURCE_DATE_EPOCH";
        let text = self.arguments.known(NAME).filter(|text| !text.is_empty())?;
        if let Ok(seconds) = text.parse() {
            return Some(seconds);
        }
        let mut args = self.globals.iter().rev().filter_map(|global| match &global.kind {
            Kind::Arg(args) => args.iter().find(|arg| arg.name.text == NAME),
            _ => None,
        });
        let span = args.next().map_or(0..0, |arg| arg.name.span.clone());
        let is_stage = self.names.iter().flatten().any(|name| name.eq_ignore_ascii_case(text));
        let refusal = if is_stage || text == "context" {
            Refusal::new(span, format!("`{NAME}={text}` is not supported")).rule(Rule::Unsupported)
        } else {
            Refusal::new(span, format!("invalid value `{NAME}={text}`"))
        };
        problems.wrong.push(refusal.help("write seconds since 1970"));
        None
    }

    /// Expands what does not depend on a stage; records the requested names.
    fn expand(&self, word: &Word, used: &mut Vec<String>, problems: &mut Problems) -> Option<String> {
        let used_names = RefCell::new(used);
        let lookup = |name: &str| {
            used_names.borrow_mut().push(name.to_owned());
            self.arguments.globals.get(name).cloned()
        };
        match expand::expand(&word.text, self.escape, &lookup) {
            Ok(text) => Some(text),
            Err(why) => {
                problems.wrong.push(Refusal::new(word.span.clone(), why));
                None
            }
        }
    }

    /// `FROM [--platform=P] IMAGE [AS NAME]`.
    fn from(&mut self, line: &Line, keyword: Part<'_>, rest: Part<'_>, problems: &mut Problems) -> Stage {
        let number = self.stages.len();
        let mut stage = Stage {
            span: line.span.clone(),
            name: self.names.get(number).cloned().flatten(),
            number,
            from: ImageOrStage::Scratch,
            by_platform: false,
            base: keyword.span(),
            instructions: Vec::new(),
        };
        let (flags, rest) = split::flags(rest);
        let mut platform = None;
        for flag in &flags {
            match (flag.name.as_str(), &flag.value) {
                ("platform", Some(value)) if !value.is_empty() => {
                    let word = Word { text: value.clone(), span: flag.value_part.span() };
                    platform = self.expand(&word, &mut Vec::new(), problems);
                }
                _ => problems.wrong(
                    flag.part.span(),
                    format!("unknown flag `--{}` of `FROM`", flag.name),
                    "`FROM` supports `--platform=OS/ARCHITECTURE`",
                ),
            }
        }
        let words = split::by_blanks(rest);
        let base = match words.as_slice() {
            [base] => base,
            [base, word, name] if word.text().eq_ignore_ascii_case("AS") => {
                if !is_name(name.text()) {
                    problems.wrong(
                        name.span(),
                        format!("invalid stage name `{}`", name.text()),
                        "a name begins with a letter and has letters, digits, `-`, `_` and `.`",
                    );
                } else if self.names[..number].contains(&stage.name) {
                    problems.remarks.push(
                        Refusal::new(name.span(), format!("duplicate stage name `{}`", name.text()))
                            .help("from here on the name refers to the later stage; use another name")
                            .rule(Rule::Lint(Lint::DuplicateStageName)),
                    );
                }
                base
            }
            _ => {
                let at = if words.is_empty() { keyword } else { rest };
                problems.wrong(
                    at.span(),
                    "`FROM` takes only an image and a name",
                    "write `FROM image` or `FROM image AS name`",
                );
                return stage;
            }
        };
        stage.base = base.span();
        let mut used = Vec::new();
        let Some(reference) = self.expand(&base.word(), &mut used, problems) else { return stage };
        stage.by_platform = used.iter().any(|name| self.by_platform.contains(name));
        let lower = reference.to_ascii_lowercase();
        let earlier = self.earlier(number);
        let found = earlier.iter().rev().find(|stage| stage.name.as_deref() == Some(&lower));
        let missing = self.missing(&base.word());
        let wrong = found.is_none() && reference.parse::<Reference>().is_err();
        stage.from = if let (true, Some(name)) = (wrong, &missing) {
            problems.refuse_by(
                Rule::Variable(name.clone()),
                base.span(),
                format!("`FROM` uses `{name}`, which has no value"),
                &self.help_for(name),
            );
            ImageOrStage::Scratch
        } else if reference.is_empty() {
            problems.wrong(base.span(), "`FROM` names no image", "write `FROM image`");
            ImageOrStage::Scratch
        } else if let Some(found) = found {
            ImageOrStage::Stage(found.index)
        } else if lower == "scratch" {
            ImageOrStage::Scratch
        } else {
            if self.names[number + 1..].iter().flatten().any(|name| *name == lower) {
                problems.remark(
                    base.span(),
                    format!("the stage `{lower}` is defined later, so an image of that name is used"),
                    "put the stage above this one",
                );
            }
            if let Some(name) = missing {
                let message = format!("`FROM` uses `{name}`, which has no value");
                let help = self.help_for(&name);
                problems
                    .remarks
                    .push(Refusal::new(base.span(), message).help(help).rule(Rule::Variable(name)));
            }
            instruction::image(&reference, platform, base.span(), problems).unwrap_or(ImageOrStage::Scratch)
        };
        stage
    }

    /// Reports a variable of a word that has no value, and needs one.
    fn missing(&self, word: &Word) -> Option<String> {
        let lookup = |name: &str| self.arguments.globals.get(name).cloned();
        expand::missing(&word.text, self.escape, &lookup).into_iter().next()
    }

    fn help_for(&self, name: &str) -> String {
        match self.nearest(name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "give it one: `ARG {name}=…` before the first `FROM`, `--build-arg {name}=…`, or `args: {{{name}: …}}` in a job"
            ),
        }
    }

    /// A declared argument whose name differs in one letter.
    fn nearest(&self, name: &str) -> Option<&str> {
        let known = !self.declared.iter().any(|declared| declared == name);
        self.declared
            .iter()
            .map(String::as_str)
            .find(|declared| known && instruction::is_near(declared, name))
    }

    /// The stage to build.
    fn target(&self, options: &Options<'_>, problems: &mut Problems) -> Option<usize> {
        let Some(wanted) = options.target else { return self.stages.len().checked_sub(1) };
        let lower = wanted.to_ascii_lowercase();
        let named = self.stages.iter().rposition(|stage| stage.name.as_deref() == Some(&lower));
        let found = named.or_else(|| wanted.parse().ok().filter(|number| *number < self.stages.len()));
        if found.is_none() && !self.stages.is_empty() {
            let list: Vec<String> = self.names.iter().flatten().map(|name| format!("`{name}`")).collect();
            let near = self.names.iter().flatten().find(|name| instruction::is_near(name, &lower));
            let list = if list.is_empty() {
                "no stage has a name".to_owned()
            } else {
                let near = near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
                format!("stages: {}{near}", list.join(", "))
            };
            let refusal = Refusal::new(0..0, format!("unknown stage `{wanted}`")).help(list);
            problems.wrong.push(refusal.rule(Rule::Target).near(near));
        }
        found
    }

    /// Reports arguments that no `ARG` declares.
    fn unused(&self, options: &Options<'_>, problems: &mut Problems) {
        for (name, _) in options.args {
            let known = PROXIES.contains(&name.as_str())
                || name == "SOURCE_DATE_EPOCH"
                || name.starts_with("BUILDKIT_")
                || self.declared.contains(name);
            if !known {
                let mut found =
                    Refusal::new(0..0, format!("no `ARG {name}` for the build argument `{name}`"));
                found.help = Some(match self.nearest(name) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "declare it, or leave it out".to_owned(),
                });
                let found = found.near(self.nearest(name));
                problems.remarks.push(found.rule(Rule::Argument(name.clone())));
            }
        }
    }
}

/// The names that `FROM … AS name` gives, in order.
fn names(lines: &[Line]) -> Vec<Option<String>> {
    let name = |line: &Line| {
        let (keyword, rest) = line.part().split_first();
        keyword.text().eq_ignore_ascii_case("FROM").then(|| {
            let words = split::by_blanks(split::flags(rest).1);
            match words.as_slice() {
                [_, word, name] if word.text().eq_ignore_ascii_case("AS") => {
                    Some(name.text().to_ascii_lowercase())
                }
                _ => None,
            }
        })
    };
    lines.iter().filter_map(name).collect()
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// The predefined arguments.
fn platforms(options: &Options<'_>) -> IndexMap<String, String> {
    let mut all = IndexMap::new();
    for (prefix, platform) in [("TARGET", options.platform), ("BUILD", options.build_platform)] {
        let mut parts = platform.splitn(3, '/');
        all.insert(format!("{prefix}PLATFORM"), platform.to_owned());
        for part in ["OS", "ARCH", "VARIANT"] {
            all.insert(format!("{prefix}{part}"), parts.next().unwrap_or_default().to_owned());
        }
    }
    all.insert("TARGETSTAGE".to_owned(), options.target.unwrap_or("default").to_owned());
    for (name, value) in options.args {
        if let Some(known) = all.get_mut(name) {
            known.clone_from(value);
        }
    }
    all
}

/// The sources of a stage, to renumber them.
fn sources(stage: &mut Stage) -> Vec<&mut ImageOrStage> {
    let mut all = vec![&mut stage.from];
    for instruction in &mut stage.instructions {
        match &mut instruction.kind {
            Kind::Copy(copy) | Kind::Add(copy) => all.extend(copy.from.as_mut()),
            Kind::Run(run) => all.extend(run.mounts.iter_mut().filter_map(|mount| mount.kind.source_mut())),
            _ => {}
        }
    }
    all
}

/// The stages that a target needs. Each depends only on previous ones, so one pass backward is enough.
fn needed(stages: &[Stage], target: usize) -> Vec<bool> {
    let mut needed = vec![false; stages.len()];
    needed[target] = true;
    for (number, stage) in stages.iter().enumerate().take(target + 1).rev() {
        if !needed[number] {
            continue;
        }
        for from in stage.instructions.iter().flat_map(Instruction::sources).chain([&stage.from]) {
            if let ImageOrStage::Stage(other) = from {
                needed[*other] = true;
            }
        }
    }
    needed
}

/// Removes stages that are not needed, and renumbers the rest.
fn prune(stages: Vec<Stage>, needed: &[bool], target: usize) -> (Vec<Stage>, usize) {
    let place = |number: usize| needed[..number].iter().filter(|needed| **needed).count();
    let mut kept: Vec<Stage> = stages.into_iter().filter(|stage| needed[stage.number]).collect();
    for stage in &mut kept {
        for from in sources(stage) {
            if let ImageOrStage::Stage(other) = from {
                *other = place(*other);
            }
        }
    }
    (kept, place(target))
}

/// Parses the instruction of an `ONBUILD` for the stage that is based on the image.
pub(super) fn trigger(text: &str, build: &Build, stage: usize) -> Result<Instruction, Refusal> {
    let span = build.stages[stage].span.clone();
    let earlier: Vec<StageRecord> = build.stages[..stage]
        .iter()
        .enumerate()
        .map(|(index, stage)| StageRecord { name: stage.name.clone(), number: stage.number, index })
        .collect();
    let read = lines::trigger(text, '\\');
    let mut problems = Problems { wrong: read.refusals, ..Problems::default() };
    let mut scope = Scope {
        escape: '\\',
        earlier: &earlier,
        own: build.stages[stage].name.as_deref(),
        later: &[],
        deferred: false,
        problems: &mut problems,
    };
    let instruction = match read.lines.as_slice() {
        [line] => instruction::read(line, &mut scope),
        _ => None,
    };
    let problem = problems.wrong.into_iter().chain(problems.unsupported).next();
    match (instruction, problem) {
        (Some(instruction), None) => Ok(Instruction { span, ..instruction }),
        (_, problem) => {
            let why = problem
                .map_or_else(|| "it is not a single instruction".to_owned(), |problem| problem.message);
            Err(Refusal::new(span, format!("the base image has `ONBUILD {text}`: {why}"))
                .help("build on an image without that instruction"))
        }
    }
}
