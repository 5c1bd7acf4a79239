//! Environment variables that the user sets.

use indexmap::IndexMap;
use jobc_schema::gpu::Gpu;
use jobc_schema::plan::{EnvPlan, TargetPlan};
use jobc_schema::role::Role;
use jobc_schema::{EnvValue, Pointer};

use super::context::Context;
use super::text::Texts;
use crate::diagnostic::{Diagnostic, Location, Sink, codes};

/// The variables of a role: the job's, overridden by the role's; null removes one.
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
            let gpus = role.resources.as_ref().and_then(|resources| resources.gpu.as_ref());
            let has_gpus = gpus.is_some_and(|gpu| !matches!(gpu, Gpu::Count(0)));
            let text = value.0.as_ref().map(|value| value.text.as_str());
            match text.filter(|_| name == VISIBLE_DEVICES) {
                Some(value) => report_visible_devices(value, has_gpus, &at, sink),
                None => report_reserved(name, Location::key(&at), sink),
            }
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

/// Reports variables of the target that jobc sets itself.
pub(super) fn check_target(target: &TargetPlan, sink: &mut Sink) {
    let at = Pointer::ROOT.keys(["targets", &target.name, "env"]);
    for name in target.settings.env.keys() {
        report_reserved(name, Location::target(&at.key(name)), sink);
    }
}

const VISIBLE_DEVICES: &str = "NVIDIA_VISIBLE_DEVICES";

/// Reports a value of `NVIDIA_VISIBLE_DEVICES`, with the equivalent field. `void` and `none` show no device,
/// so they are allowed in a role without GPUs.
fn report_visible_devices(value: &str, has_gpus: bool, at: &Pointer, sink: &mut Sink) {
    let note = match value {
        "void" | "none" if !has_gpus => return,
        "void" | "none" => "the role requests GPUs; remove the variable, or write `gpu: 0` to hide all GPUs",
        "all" => "`resources: {gpu: all}` requests every GPU of a host",
        "" => "write `void`, which hides all GPUs, or `gpu: 0`",
        _ => {
            "write their number as `resources: {gpu: N}`; `jobc run --devices` or `oci.devices` of the target selects the GPUs"
        }
    };
    let message = format!("`{VISIBLE_DEVICES}` cannot be set to `{value}`");
    sink.push(Diagnostic::error(codes::ENV_RESERVED, message).at_key(at, "").note(note));
}

/// Reports a variable that jobc or the target sets itself.
pub(super) fn report_reserved(name: &str, at: Location, sink: &mut Sink) {
    let note = match name {
        VISIBLE_DEVICES => {
            "the target sets it from `resources.gpu`; `gpu: 0` hides all GPUs, and the target or `jobc run --devices` selects the GPUs"
        }
        name if name.starts_with("JOBC_") => {
            "jobc sets the names that begin with `JOBC_` itself; choose another"
        }
        _ => return,
    };
    sink.push(
        Diagnostic::error(codes::ENV_RESERVED, format!("`{name}` cannot be set")).at_place(at, "").note(note),
    );
}
