//! The programs that a role's command starts, as far as they can be determined without running a shell.
//!
//! Words are split as a shell does, quotes and continued lines included; nothing is expanded except variables that the
//! script itself sets to a command. It is for lints, so it skips what it cannot parse.

mod launcher;
mod program;
mod split;
mod wrapper;

use jobc_schema::plan::{CommandPlan, Reference, RolePlan, Text};

pub(crate) use launcher::Launcher;
pub(crate) use program::Command;
use program::is_shell;
pub(crate) use split::split;

/// All text of a role's command, placeholders as `$`.
pub(crate) fn text(role: &RolePlan) -> String {
    let list = |texts: &[Text]| texts.iter().map(plain).collect::<Vec<_>>().join(" ");
    let before = |setup: &Option<Text>| setup.as_ref().map(|s| plain(s) + "\n").unwrap_or_default();
    match &role.command {
        CommandPlan::Image {} => String::new(),
        CommandPlan::Args(args) => list(args),
        CommandPlan::Argv { argv, setup } => before(setup) + &list(argv),
        CommandPlan::Script { setup, script, .. } => before(setup) + &plain(script),
    }
}

/// The programs that a role's command starts, in order; none if the script is not for a shell.
pub(crate) fn commands(role: &RolePlan) -> Vec<Command> {
    match &role.command {
        CommandPlan::Image {} | CommandPlan::Args(_) => vec![],
        CommandPlan::Argv { argv, setup } => {
            let words: Vec<String> = argv.iter().map(plain).collect();
            // `[bash, -c, "…"]` is treated like any program that starts another.
            let mut found = setup.as_ref().map(|s| split(&plain(s))).unwrap_or_default();
            found.extend(split::programs(&words));
            found
        }
        CommandPlan::Script { shell, setup, script } => {
            if !shell.first().is_some_and(|s| is_shell(s)) {
                return vec![];
            }
            let before = setup.as_ref().map(|s| plain(s) + "\n").unwrap_or_default();
            split(&(before + &plain(script)))
        }
    }
}

/// Whether a failure inside a pipe goes unseen in a role's own script: its shell has no `pipefail`.
pub(crate) fn hides_pipes(role: &RolePlan) -> bool {
    let (words, script) = match &role.command {
        CommandPlan::Script { shell, setup, script } => {
            let text = setup.as_ref().map(plain).unwrap_or_default() + &plain(script);
            (shell.clone(), text)
        }
        CommandPlan::Argv { argv, .. } => {
            let words: Vec<String> = argv.iter().map(plain).collect();
            let text = words.join(" ");
            (words, text)
        }
        CommandPlan::Image {} | CommandPlan::Args(_) => return false,
    };
    let mentions = words.iter().any(|word| word == "pipefail") || script.contains("pipefail");
    words.first().is_some_and(|first| is_shell(first)) && !mentions
}

/// A text for parsing: values that only a target knows become `$`, the index of the instance its variable.
pub(crate) fn plain(text: &Text) -> String {
    text.render(|reference| match reference {
        Reference::Index {} | Reference::Rank { .. } => "$JOBC_INDEX".to_owned(),
        _ => "$".to_owned(),
    })
}

/// The variables that a text uses, each with the byte where its `$` is: `$NAME`, `${NAME}`, `${NAME:-x}`.
pub(crate) fn variables(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.match_indices('$').filter_map(|(at, _)| {
        let rest = &text[at + 1..];
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let is_name = rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        is_name.then_some((&rest[..end], at))
    })
}

/// The bytes of a script whose `$` a shell expands: not those in single quotes, behind a backslash or in a comment.
pub(crate) fn expanded(text: &str) -> Vec<usize> {
    let (mut found, mut quote, mut before) = (Vec::new(), None, '\n');
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => drop(chars.next()),
            (None, '#') if before.is_whitespace() => drop(chars.find(|(_, c)| *c == '\n')),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None | Some('"'), '$') => found.push(at),
            _ => {}
        }
        before = c;
    }
    found
}
