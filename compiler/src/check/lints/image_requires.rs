//! J0346: a target that does not meet what an image requires by `NVIDIA_REQUIRE_*`.

use jobc_schema::Pointer;
use jobc_schema::gpu::{Facts, Require, Vendor, Verdict};
use jobc_schema::plan::{EnvPlan, ImageSource};

use crate::check::gpu::{self, Card, HostGpuFacts};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Reads the requirements of a role's own Dockerfile and of its variables, and compares them with the target's cards.
///
/// NVIDIA's container toolkit and `jobc run` refuse to start a container whose requirements a GPU does not meet, so an
/// unmet one is an error; they also refuse requirements that they cannot read.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let declared = HostGpuFacts::of(view);
    let facts = facts(&declared);
    for role in &view.roles {
        if gpu::nvidia(role).is_none() {
            continue;
        }
        let variables = variables(view, role);
        if variables
            .iter()
            .any(|(name, value, _)| name == "NVIDIA_DISABLE_REQUIRE" && Require::is_disabled(value))
        {
            continue;
        }
        for (name, value, at) in variables.iter().filter(|(name, ..)| Require::is_variable(name)) {
            match Require::parse(value) {
                Err(why) => sink.push(
                    Diagnostic::error(codes::IMAGE_REQUIRES, format!("`{name}` cannot be read: {why}"))
                        .at(at, "")
                        .note("separate conditions with `,` for \"and\" and a space for \"or\": `cuda>=12.4 driver>=525,brand=tesla`"),
                ),
                Ok(require) if facts.iter().all(|facts| require.evaluate(facts) == Verdict::Unmet) => {
                    let message = format!(
                        "`{name}` requires `{require}`, which {} does not meet",
                        declared.who
                    );
                    let diagnostic = Diagnostic::error(codes::IMAGE_REQUIRES, message)
                        .at(at, format!("of role `{}`", role.plan.name))
                        .note(format!("it has {}", has(&declared)))
                        .note("use an image for an older CUDA, or set `NVIDIA_DISABLE_REQUIRE: \"true\"` in `env` if the program does not need it");
                    sink.push(HostGpuFacts::label(diagnostic, declared.driver_at.as_ref(), "the target's driver"));
                }
                Ok(_) => {}
            }
        }
    }
}

/// The variables of a role's container that are known before it is built: those of its Dockerfile, then its own.
fn variables(view: &View<'_>, role: &RoleView<'_>) -> Vec<(String, String, Pointer)> {
    let mut found: Vec<(String, String, Pointer)> = vec![];
    let mut set = |name: &str, value: &str, at: Pointer| {
        found.retain(|(known, ..)| known != name);
        found.push((name.to_owned(), value.to_owned(), at));
    };
    if let Some(image) = view.plan.image_of(role.plan)
        && let ImageSource::Dockerfile { env, .. } = &image.source
    {
        for (name, value) in env {
            set(name, value, image.declared_at.key("dockerfile"));
        }
    }
    for (name, value) in &role.plan.env {
        if let EnvPlan::Text(text) = value
            && let Some(text) = text.as_literal()
        {
            set(name, text, role.at().keys(["env", name]));
        }
    }
    found
}

/// The known facts about each kind of card; if none is declared, one entry for all.
fn facts(declared: &HostGpuFacts<'_>) -> Vec<Facts> {
    let of = |card: Option<&Card<'_>>| Facts {
        cuda: declared.cuda.clone(),
        driver: declared.driver.clone(),
        arch: card.and_then(Card::capability),
        brand: None,
    };
    match declared.cards_of(Vendor::Nvidia) {
        Some(cards) if !cards.is_empty() => cards.into_iter().map(|card| of(Some(card))).collect(),
        _ => vec![of(None)],
    }
}

fn has(declared: &HostGpuFacts<'_>) -> String {
    let mut parts = vec![];
    if let Some(driver) = &declared.driver {
        parts.push(format!("driver {driver}"));
    }
    if let Some(cuda) = &declared.cuda {
        parts.push(format!("CUDA {cuda}"));
    }
    for card in declared.cards_of(Vendor::Nvidia).unwrap_or_default() {
        if let Some(capability) = card.capability() {
            parts.push(format!("`{}` of compute capability {capability}", card.name));
        }
    }
    parts.join(", ")
}
