//! The environment the user sets.

use indexmap::IndexMap;
use jobc_schema::plan::EnvPlan;
use jobc_schema::role::Role;
use jobc_schema::{EnvValue, Pointer};

use super::context::Context;
use super::text::Texts;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// The variables of a role: the job's, then the role's over them; null takes one away.
pub(super) fn resolve_env(
    context: &Context<'_>,
    texts: &Texts<'_>,
    role: &Role,
    at: &Pointer,
    sink: &mut Sink,
) -> IndexMap<String, EnvPlan> {
    let mut env: IndexMap<&str, (&EnvValue, Pointer)> = IndexMap::new();
    let both = [(&context.job.env, Pointer::ROOT.key("env")), (&role.env, at.key("env"))];
    for (values, at) in both {
        for (name, value) in values {
            let at = at.key(name);
            report_reserved(name, &at, sink);
            if value.0.is_none() {
                env.shift_remove(name.as_str());
            } else {
                env.insert(name, (value, at));
            }
        }
    }
    env.into_iter()
        .filter_map(|(name, (value, at))| {
            let text = &value.0.as_ref()?.text;
            let plan = match texts.secret(text, &at, sink) {
                Some(secret) => EnvPlan::Secret { secret },
                None => EnvPlan::Text(texts.text(text, &at, sink)),
            };
            Some((name.to_owned(), plan))
        })
        .collect()
}

/// Reports a variable that jobc or the target sets itself.
pub(super) fn report_reserved(name: &str, at: &Pointer, sink: &mut Sink) {
    let note = match name {
        "NVIDIA_VISIBLE_DEVICES" => {
            "the target sets it from `resources.gpu`; `gpu: 0` hides all GPUs, and the target or `jobc run --devices` selects the GPUs"
        }
        name if name.starts_with("JOBC_") => {
            "jobc sets the names that begin with `JOBC_` itself; choose another"
        }
        _ => return,
    };
    sink.push(
        Diagnostic::error(codes::ENV_RESERVED, format!("`{name}` cannot be set")).at_key(at, "").note(note),
    );
}
