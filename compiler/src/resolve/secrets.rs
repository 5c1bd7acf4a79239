//! Secrets by name, and the registry credentials that use them.

use indexmap::IndexMap;
use jobc_schema::Pointer;
use jobc_schema::plan::{RegistryPlan, SecretPlan};

use super::context::Context;
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::suggest;

/// The source of each secret's value.
pub(super) fn resolve_secrets(context: &Context<'_>) -> IndexMap<String, SecretPlan> {
    let mut plans = IndexMap::new();
    for (name, secret) in &context.job.secrets {
        let plan = match (&secret.env, &secret.file, &secret.store) {
            (Some(variable), None, None) => SecretPlan::Env(variable.clone()),
            (None, Some(path), None) => SecretPlan::File(path.clone()),
            (None, None, Some(store)) => {
                SecretPlan::Store { name: store.name.clone(), key: store.key.clone() }
            }
            // Exactly one is set: an earlier pass checks it.
            _ => continue,
        };
        plans.insert(name.clone(), plan);
    }
    plans
}

/// The credentials of private registries.
pub(super) fn resolve_registries(context: &Context<'_>, sink: &mut Sink) -> IndexMap<String, RegistryPlan> {
    let mut plans = IndexMap::new();
    for (host, registry) in &context.job.registries {
        let at = Pointer::ROOT.keys(["registries", host, "password", "secret"]);
        check_secret(context, &registry.password.secret, &at, sink);
        plans.insert(
            host.clone(),
            RegistryPlan {
                username: registry.username.clone(),
                password_secret: registry.password.secret.clone(),
            },
        );
    }
    plans
}

/// Reports an undeclared secret that a field names.
pub(super) fn check_secret(context: &Context<'_>, name: &str, at: &Pointer, sink: &mut Sink) {
    if !context.job.secrets.contains_key(name) {
        report_unknown(
            context,
            name,
            Location::value(at),
            Some(Location::inside(at, name, 0..name.len())),
            sink,
        );
    }
}

/// Reports an undeclared secret.
///
/// `text` is the span of its name alone, if known.
pub(super) fn report_unknown(
    context: &Context<'_>,
    name: &str,
    place: Location,
    text: Option<Location>,
    sink: &mut Sink,
) {
    let known = || context.job.secrets.keys().map(String::as_str);
    let diagnostic = Diagnostic::error(codes::SECRET_UNKNOWN, format!("unknown secret `{name}`"));
    if let Some(near) = suggest::nearest(name, known()) {
        let diagnostic = diagnostic.at_place(place, format!("did you mean `{near}`?"));
        sink.push(text.into_iter().fold(diagnostic, |diagnostic, text| diagnostic.write(text, near)));
        return;
    }
    let there = match known().next() {
        None => String::new(),
        Some(_) => format!("known: {}; ", suggest::list(known())),
    };
    let note = format!("{there}declare it as `secrets: {{{name}: {{env: NAME}}}}`");
    sink.push(diagnostic.at_place(place, "").note(note));
}
