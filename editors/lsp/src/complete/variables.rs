//! Variables of the environment in a role's commands, from its plan.

use jobc_compiler::resolve::variables_by_name;
use jobc_schema::plan::{JobPlan, RolePlan};
use lsp_types::CompletionItemKind;

use super::context::Context;
use super::item::Item;
use super::snippet;

/// The variables that may follow the `$` before the cursor, and where their names begin; `None` outside a command or
/// behind another letter.
pub(super) fn items(context: &Context<'_>, text: &str, offset: usize) -> Option<(Vec<Item>, usize)> {
    let path: Vec<&str> = context.cursor.path.iter().map(String::as_str).collect();
    let ["roles", name, "run" | "setup", ..] = path[..] else { return None };
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before = &text[..offset];
    let start = before.trim_end_matches(is_letter).len();
    let is_braced = before[..start].ends_with("${");
    if !is_braced && !before[..start].ends_with('$') {
        return None;
    }
    let close = if is_braced && !text[offset..].starts_with('}') { "}" } else { "" };
    let plan = context.session.job(context.uri).and_then(|job| job.plans().first());
    let role = plan.and_then(|plan| Some((plan, plan.roles.iter().find(|role| role.name == name)?)));
    let item = |(order, (name, about)): (u16, (String, String))| {
        let insert = format!("{}{}", name, snippet::escaped(close));
        Item::new(CompletionItemKind::Variable, &name).insert(insert).detail(about).order(order)
    };
    let set = role.map(|(plan, role)| set(plan, role)).unwrap_or_default();
    Some(((0..).zip(set).map(item).collect(), start))
}

/// The variables that a role's processes have: those of the job file, those of its framework, and those of jobc, which
/// it gets by naming them.
fn set(plan: &JobPlan, role: &RolePlan) -> Vec<(String, String)> {
    let own = role.env.keys().map(|name| (name.clone(), "in the job file".to_owned()));
    let of_jobc = variables_by_name(plan, role);
    let others = role.provided_env.keys().filter(|name| !of_jobc.contains(name));
    let others = others.map(|name| (name.clone(), "of the framework or target".to_owned()));
    own.chain(others).chain(of_jobc.iter().map(|name| (name.clone(), String::new()))).collect()
}
