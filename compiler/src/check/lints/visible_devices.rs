//! J0381: GPUs selected by numbers that an instance does not have.

use jobc_schema::Pointer;
use jobc_schema::plan::{GpuAmount, GpuPlan};
use serde_json::json;

use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// The variables of CUDA and HIP that select GPUs, by numbers from 0 in the container.
const NAMES: [&str; 2] = ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"];

/// Warns about numbers of a host's GPUs: an instance sees only its own, numbered from 0.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(count) = count(role) else { continue };
        for name in NAMES {
            let in_env = role.constant(name).map(|value| (value, role.env_at(name)));
            if let Some((numbers, at)) = in_env.and_then(|(value, at)| Some((numbers(value)?, at)))
                && let Some(found) = report(role, name, &numbers, count, true)
            {
                let found = found.at(&at, "");
                sink.push(if count == 0 { ask(role, found, numbers.len()) } else { found.remove(&at) });
            }
            let set = role.commands.iter().flat_map(|command| &command.env);
            let values = set.filter(|(own, _)| own == name).map(|(_, value)| value);
            let first = values.filter_map(|value| numbers(value)).find_map(|numbers| {
                let found = report(role, name, &numbers, count, false)?.at(&role.run_at(), "");
                Some(if count == 0 { ask(role, found, numbers.len()) } else { found })
            });
            if let Some(found) = first {
                sink.push(found);
            }
        }
    }
}

/// How many GPUs an instance has; `None` if that is known only where it runs.
fn count(role: &RoleView<'_>) -> Option<u32> {
    match role.plan.resources.gpu.as_ref().map(GpuPlan::amount) {
        None => Some(0),
        Some(GpuAmount::Count(count) | GpuAmount::AllOf(count)) => Some(count),
        Some(GpuAmount::Hidden | GpuAmount::All) => None,
    }
}

/// The numbers in a value such as `0,1`; `None` for names of GPUs, variables and the forms that hide all.
fn numbers(value: &str) -> Option<Vec<u32>> {
    value.split(',').map(|word| word.trim().parse().ok()).collect()
}

fn report(role: &RoleView<'_>, name: &str, numbers: &[u32], count: u32, for_all: bool) -> Option<Diagnostic> {
    let role = &role.plan.name;
    let highest = numbers.iter().max()?;
    let (message, note) = if count == 0 {
        (
            format!("`{name}` selects GPUs, and role `{role}` requests none"),
            "without `gpu` an instance sees no GPU",
        )
    } else if *highest >= count {
        let own = if count == 1 {
            "1 GPU, which is 0".to_owned()
        } else {
            format!("{count} GPUs, 0 to {}", count - 1)
        };
        let message = format!("`{name}` selects GPU {highest}, and an instance of role `{role}` has {own}");
        (
            message,
            "leave it out: an instance sees only its own GPUs, numbered from 0, whichever they are on the host",
        )
    } else if for_all && numbers.len() < count as usize {
        let idle = count as usize - numbers.len();
        let are = if idle == 1 { "is" } else { "are" };
        let message = format!("`{name}` hides GPUs of role `{role}`: {idle} of {count} {are} idle");
        (message, "leave it out, or request fewer GPUs")
    } else {
        return None;
    };
    Some(Diagnostic::warning(codes::VISIBLE_DEVICES, message).note(note))
}

/// Offers to request the GPUs.
fn ask(role: &RoleView<'_>, found: Diagnostic, gpus: usize) -> Diagnostic {
    let at: Pointer = role.at().key("resources").key("gpu");
    found.set(&at, json!(gpus))
}
