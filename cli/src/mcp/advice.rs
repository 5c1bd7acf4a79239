//! The advice of commands for a program that has tools and no command line: options and commands become parameters and
//! tools, and what no tool does is for the user.

use super::parameter::Kind;
use super::tool::{Permissions, Tool};
use super::tools::TOOLS;

/// After advice that a model cannot follow.
const FOR_USER: &str = " (no tool does this: ask the user)";
/// Commands of another name than their tools.
const OTHER_NAMES: [(&str, &str); 2] = [("inspect", "status"), ("ps", "status")];
/// Options of other names than their parameters.
const OTHER_OPTIONS: [(&str, &str); 1] = [("unsafe-fixes", "unsafe")];

/// What a client can call.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    /// The tool whose result it reads.
    pub tool: &'static Tool,
    pub permissions: Permissions,
}

impl Reader {
    /// A text of a command, such as its errors.
    pub(super) fn text(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let (content, end) = line.strip_suffix('\n').map_or((line, ""), |content| (content, "\n"));
            out.push_str(&if is_excerpt(content) { content.to_owned() } else { self.line(content) });
            out.push_str(end);
        }
        out
    }

    /// A line, of which each clause can be advice.
    fn line(self, line: &str) -> String {
        let clauses = line.split("; ").map(|clause| {
            let mut parts = clause.split('`');
            let mut out = parts.next().unwrap_or_default().to_owned();
            let mut is_for_user = false;
            // Every second part is in backquotes, if the last of them is closed.
            while let Some(quoted) = parts.next() {
                let Some(rest) = parts.next() else {
                    out.push('`');
                    out.push_str(quoted);
                    break;
                };
                match self.translate(quoted) {
                    Some(Ok(text)) => out.push_str(&text),
                    other => {
                        is_for_user |= other.is_some();
                        out += &format!("`{quoted}`");
                    }
                }
                out.push_str(rest);
            }
            if is_for_user { out + FOR_USER } else { out }
        });
        clauses.collect::<Vec<_>>().join("; ")
    }

    /// An option or a command as the client writes it; an error if it cannot, nothing for other text.
    fn translate(self, quoted: &str) -> Option<Result<String, ()>> {
        if quoted.starts_with("--") {
            let words: Vec<&str> = quoted.split(' ').collect();
            return Some(arguments(self.tool, &words).map(|given| given.join(", ")).ok_or(()));
        }
        let command = quoted.strip_prefix("jobc ")?;
        Some(self.call(command).ok_or(()))
    }

    /// A command as the call of a tool.
    fn call(self, command: &str) -> Option<String> {
        let words: Vec<&str> = command.split(' ').collect();
        let (name, words) = words.split_first()?;
        let name = OTHER_NAMES.iter().find(|(command, _)| command == name).map_or(*name, |(_, tool)| *tool);
        let permitted = |tool: &&Tool| tool.is_permitted(self.permissions);
        let tool = TOOLS.iter().find(|tool| tool.name == name).filter(permitted)?;
        let given = arguments(tool, words)?;
        if given.is_empty() {
            return Some(format!("`{name}`"));
        }
        Some(format!("`{name}` with {}", given.join(", ")))
    }
}

/// The words of a command line as arguments of a tool; nothing if it lacks one of them.
fn arguments(tool: &Tool, words: &[&str]) -> Option<Vec<String>> {
    let mut given = Vec::new();
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        if word.starts_with('-') && !word.starts_with("--") {
            return None;
        }
        let Some(option) = word.strip_prefix("--") else {
            let first = tool
                .parameters
                .iter()
                .find(|parameter| ["file", "job", "topic"].contains(&parameter.name))?;
            given.push(format!("`{}: {word}`", first.name));
            continue;
        };
        let (option, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let other = OTHER_OPTIONS.iter().find(|(name, _)| *name == option).map(|(_, parameter)| *parameter);
        let name = other.map_or_else(|| option.replace('-', "_"), str::to_owned);
        let parameter = tool.parameters.iter().find(|parameter| parameter.name == name)?;
        given.push(match parameter.kind {
            Kind::Flag => format!("`{name}: true`"),
            _ => match value.or_else(|| words.next_if(|word| !word.starts_with("--"))) {
                Some(value) => format!("`{name}: {value}`"),
                None => format!("`{name}`"),
            },
        });
    }
    Some(given)
}

/// A line of an excerpt of a file: `12 | text`, or a mark below it.
fn is_excerpt(line: &str) -> bool {
    line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start().starts_with('|')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tool: &str, permissions: Permissions, text: &str, expected: &str) {
        let tool = TOOLS.iter().find(|known| known.name == tool).unwrap();
        assert_eq!(Reader { tool, permissions }.text(text), expected);
    }

    #[test]
    fn advice_names_tools_and_parameters() {
        let all = Permissions { write: true, run: true };
        let none = Permissions::default();
        for (tool, permissions, text, expected) in [
            (
                "run",
                all,
                " = help: run without these limits with `--allow-unenforced`; or set this host up: `jobc doctor --fix` prints the commands\n",
                " = help: run without these limits with `allow_unenforced: true`; or set this host up: `jobc doctor --fix` prints the commands (no tool does this: ask the user)\n",
            ),
            (
                "check",
                none,
                "pass `--allow-lossy`\nx `y` `--watch`",
                "pass `allow_lossy: true`\nx `y` `--watch` (no tool does this: ask the user)",
            ),
            ("check", none, "run `jobc explain J0101`", "run `explain` with `topic: J0101`"),
            ("run", all, "submit it: `jobc submit --target lab`", "submit it: `submit` with `target: lab`"),
            (
                "check",
                none,
                "`jobc submit --target lab`",
                "`jobc submit --target lab` (no tool does this: ask the user)",
            ),
            ("stop", all, "`jobc ps --all` lists them", "`status` with `all: true` lists them"),
            ("submit", all, "`jobc logs -f`", "`jobc logs -f` (no tool does this: ask the user)"),
            (
                "check",
                all,
                "apply it: `jobc check --fix x.yaml`",
                "apply it: `jobc check --fix x.yaml` (no tool does this: ask the user)",
            ),
            ("plan", none, "3 |   run: `jobc ps`\n  |   ^ `--x`\n", "3 |   run: `jobc ps`\n  |   ^ `--x`\n"),
            ("plan", none, "an open ` and `jobc ps", "an open ` and `jobc ps"),
        ] {
            check(tool, permissions, text, expected);
        }
    }
}
