//! J0348: `$NAME` in `env`, which no target expands.

use jobc_schema::plan::{EnvPlan, Piece};

use crate::check::command::variables;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Variables whose values are templates of the program that reads them.
const TEMPLATES: [&str; 3] = ["PS1", "PS4", "PROMPT_COMMAND"];

/// Parts of the names of variables whose values may hold any letters.
const SECRETS: [&str; 4] = ["PASSWORD", "PASSWD", "SECRET", "TOKEN"];

/// Warns of values that only a shell would expand: a process gets the letters `$NAME`.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        // `eval` and `envsubst` expand what they are given.
        if ["eval ", "envsubst"].iter().any(|word| role.text.contains(word)) {
            continue;
        }
        for (name, value) in &role.plan.env {
            let EnvPlan::Text(text) = value else { continue };
            let pieces = text.pieces().iter().filter_map(|piece| match piece {
                Piece::Literal(text) => Some(text.as_str()),
                Piece::Reference(_) => None,
            });
            let Some((used, whole)) = pieces.into_iter().find_map(used) else { continue };
            let free = SECRETS.iter().any(|part| name.contains(part)) && !whole;
            let inner = role.text.contains("-c") && role.uses(name);
            if free || inner || TEMPLATES.contains(&name.as_str()) {
                continue;
            }
            sink.push(report(role, name, used));
        }
    }
}

/// The first variable or `$(…)` that a value uses, and whether it is the whole value.
fn used(text: &str) -> Option<(&str, bool)> {
    // `$$` is not the beginning of a name, nor is an escaped `$`.
    let Some((name, at)) = variables(text).find(|(_, at)| !text[..*at].ends_with(['$', '\\'])) else {
        return substitution(text).map(|inner| (inner, text.len() == inner.len() + 1));
    };
    Some((name, at == 0 && text.trim_start_matches(['$', '{']).trim_end_matches('}') == name))
}

/// The `(…)` of a `$(…)` that starts a program; `$(params.n)` is an expression of another tool, which J0151 reports.
fn substitution(text: &str) -> Option<&str> {
    let (at, _) = text.match_indices("$(").find(|(at, _)| !text[..*at].ends_with(['$', '\\']))?;
    let inner = text[at + 1..].split_inclusive(')').next().filter(|inner| inner.ends_with(')'))?;
    let program = inner[1..inner.len() - 1].split_whitespace().next()?;
    let is_program = program.starts_with(|c: char| c.is_ascii_lowercase())
        && program.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    is_program.then_some(inner)
}

fn report(role: &RoleView<'_>, name: &str, used: &str) -> Diagnostic {
    let message = if name == "PATH" {
        format!("`PATH` holds the letters `${used}`, since `env` is not read by a shell: no program is found")
    } else {
        format!("`{name}` holds the letters `${used}`, since `env` is not read by a shell")
    };
    let found = Diagnostic::warning(codes::ENV_LITERAL, message).at(&role.env_at(name), "");
    let value = match used {
        "JOBC_INDEX" => Some("${{ instance.index }}".to_owned()),
        "JOBC_JOB" => Some("${{ job.name }}".to_owned()),
        _ => role.constant(used).filter(|value| !value.contains('$')).map(str::to_owned),
    };
    if let Some(value) = value {
        let note = format!("write `{value}` instead of `${used}`");
        let braces = format!("${{{used}}}");
        let in_braces = role.constant(name).is_some_and(|text| text.contains(&braces));
        let whole = if in_braces { braces } else { format!("${used}") };
        return found.note(note).reword(&role.env_at(name), &whole, &value);
    }
    let line = shown(role, name, used);
    let found = found.note(format!("set it in `run`, which a shell reads: `export {name}={line}`"));
    if used.starts_with('(') {
        return found;
    }
    found.note("the `env` of an image block is expanded too, with the variables of the base image")
}

/// The value as a shell takes it, unless it is long or has letters that would have to be quoted.
fn shown(role: &RoleView<'_>, name: &str, used: &str) -> String {
    let plain = |value: &&str| value.len() < 60 && !value.contains(['"', '\\', '`', '\n']);
    match role.constant(name).filter(plain) {
        Some(value) => format!("\"{value}\""),
        None => format!("…${used}…"),
    }
}
