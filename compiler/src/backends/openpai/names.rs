//! Names that OpenPAI accepts.

use jobc_schema::plan::JobPlan;

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::openpai::{Names, short};

/// A role in variables and host names: the server strips everything except letters and digits, so jobs that do not come
/// from OpenPAI get names without other characters.
pub(super) fn role(name: &str) -> String {
    short(name)
}

/// A port's label, a variable name of C.
pub(super) fn label(job: &JobPlan, role: &str, name: &str) -> String {
    match job.target.settings.openpai.as_ref().filter(|settings| !settings.protocol.is_empty()) {
        Some(settings) => Names::new(Some(settings)).label(role, name),
        None => name.replace('-', "_"),
    }
}

/// A `dockerimage` prerequisite.
pub(super) fn image(name: &str) -> String {
    format!("image_{}", name.replace('-', "_"))
}

/// Rejects roles that would have the same name on OpenPAI.
pub(super) fn check(job: &JobPlan, sink: &mut Sink) {
    let mut seen: std::collections::BTreeMap<String, &str> = std::collections::BTreeMap::new();
    for found in &job.roles {
        let Some(first) = seen.insert(role(&found.name), &found.name) else { continue };
        sink.push(
            Diagnostic::error(
                codes::PAI_SAME_NAME,
                format!(
                    "roles `{first}` and `{}` have the same name on OpenPAI: `{}`",
                    found.name,
                    role(first)
                ),
            )
            .at_key(&found.at(), "the second")
            .at_key(&jobc_schema::Pointer::ROOT.keys(["roles", first]), "the first")
            .note("OpenPAI keeps only letters and digits of a role's name; rename one of the two"),
        );
    }
}
