//! J0349: `export X=$X:/more` where `X` may be unset, which ends a script under `-u`.

use std::collections::BTreeSet;

use jobc_schema::plan::{BuildStep, CommandPlan, ImageSource};

use crate::check::command::{plain, variables};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::stdlib::images;

/// Variables that a shell or every runtime sets.
const ALWAYS: [&str; 12] =
    ["PATH", "HOME", "PWD", "OLDPWD", "HOSTNAME", "SHLVL", "IFS", "UID", "EUID", "PPID", "RANDOM", "SECONDS"];

/// Variables that images for GPUs set.
const OF_GPU_IMAGES: [&str; 2] = ["LD_LIBRARY_PATH", "LIBRARY_PATH"];

/// Warns about extending a variable that nothing known has set.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let CommandPlan::Script { shell, setup, script } = &role.plan.command else { continue };
        // A file that is read into the shell may set anything.
        let reads = role.commands.iter().any(|command| ["source", "."].contains(&command.program()));
        if !shell.iter().any(|word| is_nounset(word)) || reads || role.text.contains("set +u") {
            continue;
        }
        // Most scripts set nothing.
        if !role.text.contains('=') {
            continue;
        }
        let texts = [("setup", setup.as_ref()), ("run", Some(script))];
        let texts = texts.map(|(key, text)| (key, text.map(plain).unwrap_or_default()));
        let mut set = known(view, role);
        for (key, text) in &texts {
            let mut from = 0;
            for line in text.split_inclusive('\n') {
                for (name, at) in longer(line, &mut set) {
                    let start = from + at;
                    let end = start + line[at..].find([':', '"', ' ', '\n', '/']).unwrap_or(line.len() - at);
                    let place = Location::inside(&role.at().key(key), text, start..end);
                    let found = report(name).at_place(place.clone(), "");
                    sink.push(found.write(place, &format!("${{{name}:-}}")));
                }
                from += line.len();
            }
        }
    }
}

fn report(name: &str) -> Diagnostic {
    let message = format!("`{name}` may be unset, and the shell ends at an unset variable (`-u`)");
    Diagnostic::warning(codes::UNSET_VARIABLE, message)
        .note(format!("write `${{{name}:-}}`, which is empty then; with a colon only where it is set: `${{{name}:+${name}:}}/more`"))
}

fn is_nounset(word: &str) -> bool {
    word == "nounset" || (word.starts_with('-') && !word.starts_with("--") && word.contains('u'))
}

/// The variables known to be set before the script starts.
pub(super) fn known<'v>(view: &View<'v>, role: &'v RoleView<'v>) -> BTreeSet<&'v str> {
    let mut set = BTreeSet::from(ALWAYS);
    set.extend(role.plan.env.keys().map(String::as_str));
    set.extend(role.plan.provided_env.keys().map(String::as_str));
    for command in
        role.commands.iter().filter(|command| ["read", "for", "getopts"].contains(&command.program()))
    {
        set.extend(command.arguments().iter().map(String::as_str));
    }
    let Some(image) = view.plan.image_of(role.plan) else { return set };
    match &image.source {
        ImageSource::Build { steps, args, .. } => {
            set.extend(args.keys().map(String::as_str));
            for step in steps {
                if let BuildStep::Env(env) = step {
                    set.extend(env.keys().map(String::as_str));
                }
            }
        }
        ImageSource::Dockerfile { env, .. } => set.extend(env.keys().map(String::as_str)),
        ImageSource::Reference {} | ImageSource::Host { .. } | ImageSource::File { .. } => {}
    }
    let gpu =
        view.base(image).and_then(|(reference, _)| images::facts(reference)).is_some_and(|facts| facts.gpu);
    set.extend(OF_GPU_IMAGES.into_iter().filter(|_| gpu));
    set
}

/// The variables of a line that are set from themselves and not known, with the byte where they are used; adds those
/// that the line sets.
fn longer<'l>(line: &'l str, set: &mut BTreeSet<&'l str>) -> Vec<(&'l str, usize)> {
    let mut found = Vec::new();
    let code = line.split(" #").next().unwrap_or(line);
    for (at, _) in code.match_indices('=') {
        let before = &code[..at];
        let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        let begin = before.len() - name.len();
        let starts =
            before[..begin].chars().next_back().is_none_or(|c| c.is_whitespace() || ";&(".contains(c));
        if !starts || !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            continue;
        }
        let value = value(&code[at + 1..]);
        if !set.contains(name) {
            let used = variables(value).find(|(used, at)| *used == name && is_bare(value, name, *at));
            found.extend(used.map(|(_, offset)| (name, code.len() - code[at + 1..].len() + offset)));
        }
        set.insert(name);
    }
    found
}

/// The value of an assignment, without parts in single quotes, which shells do not expand.
fn value(rest: &str) -> &str {
    if rest.starts_with('\'') {
        return "";
    }
    let quoted = rest.strip_prefix('"').map(|inner| inner.find('"').map_or(rest.len(), |at| at + 2));
    let end =
        quoted.unwrap_or_else(|| rest.find(|c: char| c.is_whitespace() || c == ';').unwrap_or(rest.len()));
    &rest[..end]
}

/// Whether a variable is used without a default: `$X` and `${X}`, not `${X:-}`, nor inside `${X:+…}`.
pub(super) fn is_bare(value: &str, name: &str, at: usize) -> bool {
    if [":+", "+"].iter().any(|guard| value[..at].contains(&format!("${{{name}{guard}"))) {
        return false;
    }
    let rest = &value[at + 1..];
    match rest.strip_prefix('{') {
        Some(rest) => rest[name.len()..].starts_with('}'),
        None => true,
    }
}
