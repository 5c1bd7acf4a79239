//! Dockerfiles as data, and their serialization.
//!
//! Every builder can build the output offline: it has no `# syntax=` line, which would pull a frontend from a
//! registry. `RUN <<EOF` is used only if the command does not fit on one line.

mod quote;
#[cfg(test)]
mod tests;

use std::fmt;

use quote::{Dollar, argument, json_array, quoted, word};

/// A Dockerfile: leading comments, and instructions in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dockerfile {
    /// Comment lines above the first instruction, without `#`.
    pub head: Vec<String>,
    /// The instructions.
    pub instructions: Vec<Instruction>,
}

/// One instruction and the comment above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Comment lines above the instruction, without `#`; one that begins with `hadolint` is a pragma.
    pub comments: Vec<String>,
    /// The instruction.
    pub kind: Kind,
}

/// An instruction with its operands.
///
/// Texts are unquoted: this module quotes and escapes them. `$NAME` is a variable in `ENV`, `WORKDIR` and
/// commands, and literal text everywhere else. Only commands may contain line breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `FROM [--platform=…] image [AS alias]`.
    From {
        /// The platform.
        platform: Option<String>,
        /// The image's reference.
        image: String,
        /// The stage's name.
        alias: Option<String>,
    },
    /// `ARG name[=default]`.
    Arg {
        /// The name.
        name: String,
        /// The default value.
        default: Option<String>,
    },
    /// `ENV name="value" …`; a value sees only variables of earlier instructions.
    Env(Vec<(String, String)>),
    /// `LABEL name="value" …`.
    Label(Vec<(String, String)>),
    /// `STOPSIGNAL signal`.
    Stopsignal(String),
    /// `SHELL ["program", …]`.
    Shell(Vec<String>),
    /// `RUN …`.
    Run {
        /// Mounts that exist only while the command runs.
        mounts: Vec<Mount>,
        /// The command.
        command: Command,
    },
    /// `COPY …`.
    Copy {
        /// The stage or image to copy from, instead of the context.
        from: Option<String>,
        /// The owner of the copies.
        chown: Option<String>,
        /// The permission bits of the copies, in octal.
        chmod: Option<String>,
        /// The sources.
        sources: Vec<String>,
        /// The destination.
        to: String,
    },
    /// `WORKDIR path`.
    Workdir(String),
    /// `USER name`.
    User(String),
    /// `EXPOSE port …`.
    Expose(Vec<String>),
    /// `ENTRYPOINT ["program", …]`.
    Entrypoint(Vec<String>),
    /// `CMD ["argument", …]`.
    Cmd(Vec<String>),
}

/// A mount of a `RUN` instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mount {
    /// A cache directory kept between builds.
    Cache {
        /// The mount point.
        target: String,
        /// Whether concurrent builds wait for each other, as apt's directories need.
        locked: bool,
    },
    /// A secret, at `/run/secrets/ID`.
    Secret {
        /// The ID that the builder knows it by.
        id: String,
    },
}

/// The command of `RUN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Lines of one shell command that we generate, joined by `\`; later lines may be indented.
    Lines(Vec<String>),
    /// A script as written: on the `RUN` line if that does not change its meaning, else as a here-document.
    Script(String),
    /// Arguments, without a shell.
    Exec(Vec<String>),
}

impl Dockerfile {
    /// Adds an instruction and returns its index.
    pub fn push(&mut self, kind: Kind) -> usize {
        self.push_with(kind, Vec::<String>::new())
    }

    /// Adds an instruction with a comment above it, and returns its index.
    pub fn push_with(&mut self, kind: Kind, comments: impl IntoIterator<Item = impl Into<String>>) -> usize {
        let comments = comments.into_iter().map(Into::into).collect();
        self.instructions.push(Instruction { comments, kind });
        self.instructions.len() - 1
    }

    /// Serializes the file, and returns the line (from 1) on which each instruction begins.
    pub fn render(&self) -> (String, Vec<u32>) {
        let mut text = String::new();
        let mut line = 1;
        let mut lines = Vec::with_capacity(self.instructions.len());
        let mut write = |part: &str, line: &mut u32| {
            text.push_str(part);
            *line += u32::try_from(part.matches('\n').count()).unwrap_or(u32::MAX);
        };
        for comment in &self.head {
            write(&comment_line(comment), &mut line);
        }
        let mut before: Option<(std::mem::Discriminant<Kind>, bool)> = None;
        for instruction in &self.instructions {
            let body = instruction.kind.to_string();
            let large = body.contains('\n') || !instruction.comments.is_empty();
            let kind = std::mem::discriminant(&instruction.kind);
            // Short instructions of one kind are grouped; others are separated by an empty line.
            let apart = match before {
                None => !self.head.is_empty(),
                Some((kind_before, large_before)) => large || large_before || kind != kind_before,
            };
            if apart {
                write("\n", &mut line);
            }
            for comment in &instruction.comments {
                write(&comment_line(comment), &mut line);
            }
            lines.push(line);
            write(&body, &mut line);
            write("\n", &mut line);
            before = Some((kind, large));
        }
        (text, lines)
    }
}

impl fmt::Display for Dockerfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render().0)
    }
}

/// A comment as lines of the file; line breaks in it start further comment lines, never instructions.
fn comment_line(comment: &str) -> String {
    let lines = comment.split(['\n', '\r']).map(|line| format!("# {line}").trim_end().to_owned() + "\n");
    lines.collect()
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From { platform, image, alias } => {
                f.write_str("FROM ")?;
                option(f, "platform", platform.as_deref())?;
                f.write_str(image)?;
                alias.as_ref().map_or(Ok(()), |alias| write!(f, " AS {alias}"))
            }
            Self::Arg { name, default: None } => write!(f, "ARG {name}"),
            Self::Arg { name, default: Some(value) } => {
                write!(f, "ARG {name}={}", quoted(value, Dollar::Text))
            }
            Self::Env(pairs) => write_pairs(f, "ENV", pairs, Dollar::Variable),
            Self::Label(pairs) => write_pairs(f, "LABEL", pairs, Dollar::Text),
            Self::Stopsignal(signal) => write!(f, "STOPSIGNAL {signal}"),
            Self::Shell(argv) => write!(f, "SHELL {}", json_array(argv)),
            Self::Run { mounts, command } => write_run(f, mounts, command),
            Self::Copy { from, chown, chmod, sources, to } => {
                f.write_str("COPY ")?;
                option(f, "from", from.as_deref())?;
                option(f, "chown", chown.as_deref())?;
                option(f, "chmod", chmod.as_deref())?;
                let paths: Vec<&str> = sources.iter().chain([to]).map(String::as_str).collect();
                f.write_str(&quote::paths(&paths))
            }
            Self::Workdir(path) => write!(f, "WORKDIR {}", argument(path)),
            Self::User(user) => write!(f, "USER {}", word(user)),
            Self::Expose(ports) => write!(f, "EXPOSE {}", ports.join(" ")),
            Self::Entrypoint(argv) => write!(f, "ENTRYPOINT {}", json_array(argv)),
            Self::Cmd(argv) => write!(f, "CMD {}", json_array(argv)),
        }
    }
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cache { target, locked: false } => write!(f, "--mount=type=cache,target={target}"),
            Self::Cache { target, locked: true } => {
                write!(f, "--mount=type=cache,target={target},sharing=locked")
            }
            Self::Secret { id } => write!(f, "--mount=type=secret,id={id},required=true"),
        }
    }
}

fn option(f: &mut fmt::Formatter<'_>, name: &str, value: Option<&str>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, "--{name}={} ", word(value)))
}

/// `ENV` and `LABEL`: one pair per line, aligned.
fn write_pairs(
    f: &mut fmt::Formatter<'_>,
    keyword: &str,
    pairs: &[(String, String)],
    dollar: Dollar,
) -> fmt::Result {
    let indent = format!(" \\\n{:width$}", "", width = keyword.len() + 1);
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", quote::key(name), quoted(value, dollar))).collect();
    write!(f, "{keyword} {}", pairs.join(&indent))
}

const INDENT: &str = " \\\n    ";

fn write_run(f: &mut fmt::Formatter<'_>, mounts: &[Mount], command: &Command) -> fmt::Result {
    f.write_str("RUN ")?;
    for (i, mount) in mounts.iter().enumerate() {
        write!(f, "{}{mount}", if i == 0 { "" } else { INDENT })?;
    }
    let gap = if mounts.is_empty() { "" } else { INDENT };
    match command {
        Command::Lines(lines) => write!(f, "{gap}{}", lines.join(INDENT)),
        Command::Exec(argv) => write!(f, "{gap}{}", json_array(argv)),
        Command::Script(script) => {
            if let Some(line) = quote::one_line(script) {
                return write!(f, "{gap}{line}");
            }
            let (delimiter, body) = quote::here_document(script);
            // After options, the here-document must be on the same line to be recognized by every parser.
            let gap = if mounts.is_empty() { "" } else { " " };
            write!(f, "{gap}<<{delimiter}\n{body}{delimiter}")
        }
    }
}
