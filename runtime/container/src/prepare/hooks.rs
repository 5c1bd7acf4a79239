//! Hooks: those that run inside the container's namespaces, as steps.

use super::steps::Steps;
use crate::bundle::Bundle;
use crate::hooks::container_namespace::{ContainerHook, StateText};
use crate::operation::Operation;
use crate::options::Options;
use crate::start::Program;
use jobc_sys::error::Result;

/// Whether there are hooks that the parent runs between the mounts and the entering of the root.
pub(super) fn parent_hooks(spec: &oci_spec::runtime::Spec) -> bool {
    spec.hooks().as_ref().is_some_and(|hooks| {
        #[allow(deprecated)]
        let prestart = hooks.prestart();
        [prestart, hooks.create_runtime()]
            .into_iter()
            .any(|stage| stage.as_ref().is_some_and(|list| !list.is_empty()))
    })
}

/// Lists the hooks of a stage that run inside the container's namespaces. Those that run inside the root get the filter
/// of the `program`, and its environment.
pub(super) fn list_hooks(
    steps: &mut Steps,
    bundle: &Bundle,
    options: &Options,
    stage: &'static str,
    program: Option<&Program>,
) -> Result<()> {
    let Some(hooks) = bundle.config.spec.hooks() else { return Ok(()) };
    let (list, status) = if stage == "createContainer" {
        (hooks.create_container(), "creating")
    } else {
        (hooks.start_container(), "created")
    };
    let spec = &bundle.config.spec;
    let annotations =
        serde_json::json!(spec.annotations().iter().flatten().collect::<std::collections::BTreeMap<_, _>>());
    let filter = program.and_then(|program| program.filter.as_ref());
    let environment = program.map(|program| &program.environment[..]).unwrap_or_default();
    let state = StateText::new(spec.version(), &options.id, status, &bundle.dir, &annotations);
    for (index, hook) in list.iter().flatten().enumerate() {
        let place = format!("/hooks/{stage}/{index}");
        let inside =
            ContainerHook::new(stage, hook, &state, filter, environment).map_err(|error| error.at(&place))?;
        steps.push_at(place, Operation::Hook(inside));
    }
    Ok(())
}
