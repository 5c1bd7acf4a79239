//! The forms of instructions: a joined line in, what it asks for out.

mod copy;
mod healthcheck;
mod mount;
mod ports;
mod run;

use super::heredoc::Raw;
use super::lines::{Line, Part};
use super::words::{self, Flag};
use super::{Arg, Command, From, Instruction, Kind, Refusal, Span, Word};

use crate::image::Reference;
use crate::signals::Signal;

pub use ports::ports;

/// Every instruction.
const KEYWORDS: &[&str] = &[
    "ADD",
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "MAINTAINER",
    "ONBUILD",
    "RUN",
    "SHELL",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
];

/// What was found to be wrong.
#[derive(Default)]
pub(super) struct Problems {
    /// What no builder takes.
    pub(super) wrong: Vec<Refusal>,
    /// What this builder does not do: of no weight in a stage that is not built.
    pub(super) unsupported: Vec<Refusal>,
    /// What forbids nothing.
    pub(super) remarks: Vec<Refusal>,
}

impl Problems {
    pub(super) fn wrong(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.wrong.push(Refusal::new(span, message).help(help));
    }

    pub(super) fn unsupported(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.unsupported.push(Refusal { unsupported: true, ..Refusal::new(span, message).help(help) });
    }

    pub(super) fn remark(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.remarks.push(Refusal::new(span, message).help(help));
    }
}

/// A stage that can be taken from.
#[derive(Clone, Debug)]
pub(super) struct Earlier {
    pub(super) name: Option<String>,
    /// Its number in the file.
    pub(super) number: usize,
    /// What [`From::Stage`] calls it.
    pub(super) index: usize,
}

/// What an instruction is read with.
pub(super) struct Scope<'a> {
    pub(super) escape: char,
    /// The stages before this one.
    pub(super) earlier: &'a [Earlier],
    /// This stage's name.
    pub(super) own: Option<&'a str>,
    /// The names of the stages behind, and how many stages there are: to say what is wrong.
    pub(super) later: &'a [String],
    /// Behind `ONBUILD`: a build that is not known yet gives names their meaning.
    pub(super) deferred: bool,
    pub(super) problems: &'a mut Problems,
}

/// Reads an instruction other than `FROM`; nothing where it cannot be read, which is told.
pub(super) fn read(line: &Line, scope: &mut Scope<'_>) -> Option<Instruction> {
    let part = line.part();
    let kind = kind(part, &line.heredocs, scope)?;
    Some(Instruction { span: line.span.clone(), text: part.text().to_owned(), kind })
}

fn kind(part: Part<'_>, heredocs: &[Raw], scope: &mut Scope<'_>) -> Option<Kind> {
    let (keyword, rest) = part.split_first();
    let name = keyword.text().to_ascii_uppercase();
    if !KEYWORDS.contains(&name.as_str()) {
        let known = match nearest(&name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("an instruction is one of {}.", KEYWORDS.join(", ")),
        };
        scope.problems.wrong(
            keyword.span(),
            format!("`{}` is no instruction", keyword.text()),
            &format!("{known} A line goes on in the next where it ends with `{}`", scope.escape),
        );
        return None;
    }
    match name.as_str() {
        "RUN" => return run::read(keyword, rest, heredocs, scope).map(Kind::Run),
        "COPY" => return copy::read(keyword, rest, heredocs, scope, false).map(Kind::Copy),
        "ADD" => return copy::read(keyword, rest, heredocs, scope, true).map(Kind::Add),
        "HEALTHCHECK" => return healthcheck::read(keyword, rest, scope).map(Kind::Healthcheck),
        "ONBUILD" => return onbuild(keyword, rest, heredocs, scope),
        // Every builder takes what looks like a flag here for text.
        "CMD" | "ENTRYPOINT" | "ARG" | "MAINTAINER" => {}
        _ => {
            let (flags, _) = words::flags(rest);
            if let Some(flag) = flags.first() {
                unknown_flag(&name, flag, &[], scope);
                return None;
            }
        }
    }
    if rest.is_empty() && !matches!(name.as_str(), "CMD" | "ENTRYPOINT") {
        let form = match name.as_str() {
            "ARG" => "ARG NAME=DEFAULT",
            "ENV" | "LABEL" => "NAME=VALUE",
            "EXPOSE" => "EXPOSE 8080",
            "SHELL" => "SHELL [\"/bin/sh\", \"-c\"]",
            "STOPSIGNAL" => "STOPSIGNAL SIGTERM",
            "USER" => "USER name:group",
            "WORKDIR" => "WORKDIR /path",
            _ => "VOLUME /path",
        };
        scope.problems.wrong(
            keyword.span(),
            format!("`{name}` needs an argument"),
            &format!("such as `{form}`"),
        );
        return None;
    }
    Some(match name.as_str() {
        "ARG" => Kind::Arg(args(rest, scope)?),
        "ENV" => Kind::Env(pairs(rest, scope)?),
        "LABEL" => Kind::Label(pairs(rest, scope)?),
        "CMD" => Kind::Cmd(command(rest, scope)?),
        "ENTRYPOINT" => Kind::Entrypoint(command(rest, scope)?),
        "SHELL" => match words::json(rest) {
            Some(Ok(words)) if !words.is_empty() => Kind::Shell(words),
            _ => {
                scope.problems.wrong(
                    rest.span(),
                    "`SHELL` takes a JSON array of strings",
                    "such as `SHELL [\"/bin/bash\", \"-o\", \"pipefail\", \"-c\"]`",
                );
                return None;
            }
        },
        "EXPOSE" => {
            let words = words::by_blanks(rest);
            for word in words.iter().filter(|word| !word.text().contains(['$', '"', '\''])) {
                if let Err(why) = ports(word.text()) {
                    scope.problems.wrong(word.span(), why, "write `PORT`, `FIRST-LAST` or `PORT/udp`");
                }
            }
            Kind::Expose(words.iter().map(Part::word).collect())
        }
        "VOLUME" => {
            let words = list(rest, scope)?;
            if let Some(word) = words.iter().find(|word| word.text.trim().is_empty()) {
                scope.problems.wrong(
                    word.span.clone(),
                    "a volume's path is empty",
                    "write a path, such as `/data`",
                );
            }
            Kind::Volume(words)
        }
        "STOPSIGNAL" => {
            if !rest.text().contains(['$', '"', '\'']) && Signal::parse(rest.text()).is_err() {
                let message = format!("`{}` is no signal", rest.text());
                scope.problems.wrong(rest.span(), message, "write a name or a number, such as `SIGTERM`");
            }
            Kind::Stopsignal(rest.word())
        }
        "USER" => Kind::User(rest.word()),
        "WORKDIR" => Kind::Workdir(rest.word()),
        _ => {
            scope.problems.remark(
                keyword.span(),
                "`MAINTAINER` is deprecated",
                "write `LABEL org.opencontainers.image.authors=…`",
            );
            Kind::Maintainer(rest.text().to_owned())
        }
    })
}

/// The instruction that was meant: one letter too many, too few, another, or swapped with its neighbour.
fn nearest(name: &str) -> Option<&'static str> {
    let near = |known: &&&str| {
        let (short, long) = if known.len() < name.len() { (**known, name) } else { (name, **known) };
        let same = short.bytes().zip(long.bytes()).take_while(|(a, b)| a == b).count();
        let (short, long) = (&short.as_bytes()[same..], &long.as_bytes()[same..]);
        match (short, long) {
            ([a, b, rest @ ..], [c, d, other @ ..]) if a == d && b == c => rest == other,
            _ if short.len() == long.len() => short.get(1..) == long.get(1..),
            _ => long.get(1..) == Some(short),
        }
    };
    KEYWORDS.iter().find(near).copied()
}

/// `ONBUILD INSTRUCTION`: read once to find mistakes, kept as it is written.
fn onbuild(keyword: Part<'_>, rest: Part<'_>, heredocs: &[Raw], scope: &mut Scope<'_>) -> Option<Kind> {
    let (inner, _) = rest.split_first();
    let name = inner.text().to_ascii_uppercase();
    if name.is_empty() {
        scope.problems.wrong(
            keyword.span(),
            "`ONBUILD` needs an instruction",
            "such as `ONBUILD COPY . /app`",
        );
        return None;
    }
    if ["ONBUILD", "FROM", "MAINTAINER"].contains(&name.as_str()) {
        scope.problems.wrong(
            inner.span(),
            format!("`{name}` cannot stand behind `ONBUILD`"),
            "any other instruction can",
        );
        return None;
    }
    let mut inner = Scope {
        escape: scope.escape,
        earlier: scope.earlier,
        own: scope.own,
        later: scope.later,
        deferred: true,
        problems: scope.problems,
    };
    kind(rest, heredocs, &mut inner)?;
    let mut text = rest.text().to_owned();
    for heredoc in heredocs {
        text += &format!("\n{}{}", heredoc.content, heredoc.name);
    }
    Some(Kind::Onbuild(text))
}

/// `NAME`, `NAME=DEFAULT`.
pub(super) fn args(rest: Part<'_>, scope: &mut Scope<'_>) -> Option<Vec<Arg>> {
    let mut args = Vec::new();
    for word in words::by_quotes(rest, scope.escape) {
        let text = word.text();
        let (name, default) = match text.find('=') {
            Some(at) => (word.slice(0, at), Some(word.slice(at + 1, text.len()).word())),
            None => (word, None),
        };
        if name.is_empty() {
            scope.problems.wrong(word.span(), "an argument has no name", "write `ARG NAME=DEFAULT`");
            return None;
        }
        args.push(Arg { name: name.word(), default });
    }
    Some(args)
}

/// `NAME=VALUE …`, or `NAME VALUE` where the first word has no `=`.
fn pairs(rest: Part<'_>, scope: &mut Scope<'_>) -> Option<Vec<(Word, Word)>> {
    let words = words::by_quotes(rest, scope.escape);
    if words.first().is_some_and(|word| !word.text().contains('=')) {
        let (name, value) = rest.split_first();
        if value.is_empty() {
            scope.problems.wrong(
                name.span(),
                format!("`{}` has no value", name.text()),
                "write `NAME=VALUE`",
            );
            return None;
        }
        return Some(vec![(name.word(), value.word())]);
    }
    let mut pairs = Vec::new();
    for word in words {
        let text = word.text();
        match text.find('=') {
            Some(0) => {
                scope.problems.wrong(word.span(), "a value has no name", "write `NAME=VALUE`");
                return None;
            }
            Some(at) => pairs.push((word.slice(0, at).word(), word.slice(at + 1, text.len()).word())),
            None => {
                scope.problems.wrong(
                    word.span(),
                    format!("`{text}` is no `NAME=VALUE`"),
                    "a value with blanks needs quotes: `NAME=\"a b\"`",
                );
                return None;
            }
        }
    }
    Some(pairs)
}

/// A command line in either form.
fn command(rest: Part<'_>, scope: &mut Scope<'_>) -> Option<Command> {
    if rest.is_empty() {
        return Some(Command::Exec(Vec::new()));
    }
    match words::json(rest) {
        Some(Ok(words)) => Some(Command::Exec(words)),
        Some(Err(())) => {
            not_strings(rest, scope);
            None
        }
        None => {
            almost_json(rest, scope);
            Some(Command::Shell(rest.text().to_owned()))
        }
    }
}

/// A JSON array of strings, or words between blanks.
fn list(rest: Part<'_>, scope: &mut Scope<'_>) -> Option<Vec<Word>> {
    match words::json(rest) {
        Some(Ok(words)) => Some(words.into_iter().map(|text| Word { text, span: rest.span() }).collect()),
        Some(Err(())) => {
            not_strings(rest, scope);
            None
        }
        None => {
            almost_json(rest, scope);
            Some(words::by_blanks(rest).iter().map(Part::word).collect())
        }
    }
}

fn not_strings(rest: Part<'_>, scope: &mut Scope<'_>) {
    scope.problems.wrong(
        rest.span(),
        "the JSON form takes strings only",
        "put double quotes around every argument: `[\"sleep\", \"5\"]`",
    );
}

fn almost_json(rest: Part<'_>, scope: &mut Scope<'_>) {
    let text = rest.text();
    // `[ -f x ] && …` is the shell's.
    if text.starts_with('[') && text.ends_with(']') && !text.starts_with("[ ") && !text.starts_with("[[") {
        scope.problems.remark(
            rest.span(),
            "this is no JSON, so it is taken for text",
            "the JSON form has double quotes, and no comma at its end: `[\"a\", \"b\"]`",
        );
    }
}

fn unknown_flag(instruction: &str, flag: &Flag<'_>, known: &[&str], scope: &mut Scope<'_>) {
    let help = if known.is_empty() {
        format!("`{instruction}` has no flags")
    } else {
        let list: Vec<String> = known.iter().map(|name| format!("`--{name}`")).collect();
        format!("`{instruction}` has {}", list.join(", "))
    };
    scope.problems.wrong(flag.part.span(), format!("`{instruction}` has no flag `--{}`", flag.name), &help);
}

/// The word that a flag's value is.
fn flag_value(instruction: &str, flag: &Flag<'_>, scope: &mut Scope<'_>) -> Option<Word> {
    match &flag.value {
        Some(value) if !value.is_empty() => Some(Word { text: value.clone(), span: flag.value_part.span() }),
        _ => {
            let name = &flag.name;
            let message = format!("`{instruction} --{name}` has no value");
            scope.problems.wrong(flag.part.span(), message, &format!("write `--{name}=VALUE`"));
            None
        }
    }
}

/// What a flag without a value, or with `=true` or `=false`, says.
fn flag_bool(instruction: &str, flag: &Flag<'_>, scope: &mut Scope<'_>) -> Option<bool> {
    match flag.value.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => {
            let message = format!("`{instruction} --{}` is `true` or `false`", flag.name);
            scope.problems.wrong(flag.value_part.span(), message, "without a value it is `true`");
            None
        }
    }
}

/// What `--from=` names: a stage before this one, else an image.
fn source(text: &str, span: Span, scope: &mut Scope<'_>) -> Option<From> {
    if text.contains('$') {
        scope.problems.wrong(
            span,
            "`from` takes no variables",
            "give the image a name at the top, `FROM $IMAGE AS name`, and write that",
        );
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let named = scope.earlier.iter().rev().find(|stage| stage.name.as_deref() == Some(&lower));
    let number = text.parse::<usize>().ok();
    let found = named.or_else(|| scope.earlier.iter().find(|stage| Some(stage.number) == number));
    if let Some(stage) = found {
        return Some(From::Stage(stage.index));
    }
    if scope.deferred {
        return Some(From::Image { reference: text.to_owned(), platform: None, span });
    }
    if scope.own == Some(&lower) || number == Some(scope.earlier.len()) {
        scope.problems.wrong(
            span,
            format!("`{text}` is this stage itself"),
            "a stage takes from those above it",
        );
        return None;
    }
    if number.is_some() || scope.later.contains(&lower) {
        let message = match number {
            Some(number) if number > scope.earlier.len() + scope.later.len() => {
                format!("there is no stage {number}")
            }
            _ => format!("the stage `{text}` comes later"),
        };
        scope.problems.wrong(span, message, "a stage takes from those above it, whose numbers begin at 0");
        return None;
    }
    if lower == "scratch" {
        return Some(From::Scratch);
    }
    image(text, None, span, scope.problems)
}

/// An image by its reference, where that is well formed.
pub(super) fn image(
    text: &str,
    platform: Option<String>,
    span: Span,
    problems: &mut Problems,
) -> Option<From> {
    if let Err(error) = text.parse::<Reference>() {
        problems.wrong.push(Refusal { help: error.help, ..Refusal::new(span, error.message) });
        return None;
    }
    Some(From::Image { reference: text.to_owned(), platform, span })
}
