//! Parses instructions from joined lines.

mod arguments;
mod copy;
mod flags;
mod from;
mod healthcheck;
mod mount;
mod mount_value;
mod ports;
mod run;
mod scope;

use super::forms::{Arg, Instruction, Kind, Word};
use super::line::{Line, Part, Raw};
use super::refusal::{Refusal, Rule};
use super::rules::Lint;
use super::split;

use jobc_schema::signal;

use arguments::{command, list};
use flags::unknown_flag;
pub(super) use from::image;
pub use ports::ports;
pub(super) use scope::{Problems, Scope, StageRecord};

/// All keywords of instructions.
pub(super) const KEYWORDS: &[&str] = &[
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

/// Parses an instruction other than `FROM`; returns `None` for an invalid one, which is reported.
pub(super) fn read(line: &Line, scope: &mut Scope<'_>) -> Option<Instruction> {
    let part = line.part();
    let kind = kind(part, &line.heredocs, scope)?;
    Some(Instruction { span: line.span.clone(), text: part.text().to_owned(), kind })
}

/// Whether a word is a mark for omitted text, such as `...`.
fn is_omission(word: &str) -> bool {
    let inner = word.trim_start_matches(['[', '<', '(']).trim_end_matches([']', '>', ')']);
    !inner.is_empty()
        && inner.chars().all(|c| c == '.' || c == '…')
        && (inner.contains('…') || inner.len() > 2)
}

fn kind(part: Part<'_>, heredocs: &[Raw], scope: &mut Scope<'_>) -> Option<Kind> {
    let (keyword, rest) = part.split_first();
    let name = keyword.text().to_ascii_uppercase();
    if !KEYWORDS.contains(&name.as_str()) {
        if is_omission(keyword.text()) {
            let message =
                format!("`{}` is not an instruction, it marks omitted text: remove it", keyword.text());
            let help = "write the omitted instructions instead, or begin the line with `#`";
            scope.problems.wrong.push(Refusal::new(keyword.span(), message).help(help));
            return None;
        }
        let near = nearest(&name);
        let known = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("an instruction is one of {}.", KEYWORDS.join(", ")),
        };
        let message = format!("unknown instruction `{}`", keyword.text());
        let help = format!("{known} A line that ends with `{}` continues on the next line", scope.escape);
        scope.problems.wrong.push(Refusal::new(keyword.span(), message).help(help).near(near));
        return None;
    }
    match name.as_str() {
        "RUN" => return run::read(keyword, rest, heredocs, scope).map(Kind::Run),
        "COPY" => return copy::read(keyword, rest, heredocs, scope, false).map(Kind::Copy),
        "ADD" => return copy::read(keyword, rest, heredocs, scope, true).map(Kind::Add),
        "HEALTHCHECK" => return healthcheck::read(keyword, rest, scope).map(Kind::Healthcheck),
        "ONBUILD" => return onbuild(keyword, rest, heredocs, scope),
        // Every builder treats what looks like a flag here as text.
        "CMD" | "ENTRYPOINT" | "ARG" | "MAINTAINER" => {}
        _ => {
            let (flags, _) = split::flags(rest);
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
        "SHELL" => match split::json(rest) {
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
            let words = split::by_blanks(rest);
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
            if !rest.text().contains(['$', '"', '\'']) && signal::number(rest.text()).is_none() {
                let message = format!("unknown signal `{}`", rest.text());
                scope.problems.wrong(rest.span(), message, "write a name or a number, such as `SIGTERM`");
            }
            Kind::Stopsignal(rest.word())
        }
        "USER" => Kind::User(rest.word()),
        "WORKDIR" => Kind::Workdir(rest.word()),
        _ => {
            maintainer(part, rest, scope);
            Kind::Maintainer(rest.text().to_owned())
        }
    })
}

/// `MAINTAINER`, which labels have replaced.
fn maintainer(part: Part<'_>, rest: Part<'_>, scope: &mut Scope<'_>) {
    let name = rest.text();
    // Quotes, variables and escapes have another meaning in a label.
    let plain = !name.contains(['"', '\'', '$', '\\', '`']) && part.span().len() == part.text().len();
    let label = plain.then(|| format!("LABEL org.opencontainers.image.authors=\"{name}\""));
    let found = Refusal::new(part.span(), "`MAINTAINER` is deprecated")
        .help("write `LABEL org.opencontainers.image.authors=…`")
        .rule(Rule::Lint(Lint::MaintainerDeprecated));
    scope.problems.remarks.push(found.near(label));
}

/// The instruction that was probably intended.
fn nearest(name: &str) -> Option<&'static str> {
    KEYWORDS.iter().find(|known| is_near(known, name)).copied()
}

/// Whether two words differ by one inserted, missing or replaced letter, or by two swapped neighbors.
pub(super) fn is_near(known: &str, name: &str) -> bool {
    let (short, long) = if known.len() < name.len() { (known, name) } else { (name, known) };
    let same = short.bytes().zip(long.bytes()).take_while(|(a, b)| a == b).count();
    let (short, long) = (&short.as_bytes()[same..], &long.as_bytes()[same..]);
    match (short, long) {
        ([a, b, rest @ ..], [c, d, other @ ..]) if a == d && b == c && rest == other => true,
        _ if short.len() == long.len() => short.get(1..) == long.get(1..),
        _ => long.get(1..) == Some(short),
    }
}

/// `ONBUILD INSTRUCTION`: parsed once to find errors, kept as written.
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
            format!("`{name}` is not allowed after `ONBUILD`"),
            "all other instructions are allowed",
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
    for word in split::by_quotes(rest, scope.escape) {
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

/// `NAME=VALUE …`, or `NAME VALUE` if the first word has no `=`.
fn pairs(rest: Part<'_>, scope: &mut Scope<'_>) -> Option<Vec<(Word, Word)>> {
    let words = split::by_quotes(rest, scope.escape);
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
                    format!("`{text}` is not `NAME=VALUE`"),
                    "a value with spaces needs quotes: `NAME=\"a b\"`",
                );
                return None;
            }
        }
    }
    Some(pairs)
}
