//! Text that every builder accepts but that is probably a mistake: the rules of `docker build --check` ([`Lint`]).
//!
//! The rules are applied to the file alone. Rules that need the context are in [`ignored_sources`], those that need
//! base images in [`undefined_variables`]. Only certain findings are reported: a variable that a base
//! image may define is not reported.

mod comments;
mod findings;
mod ignored;
mod instructions;
mod keywords;
mod secrets;
mod stages;
mod undefined;

use super::build::Inspection;
use super::line::Line;
use super::refusal::Refusal;
use super::rules::Lint;
use findings::Findings;

pub use ignored::ignored_sources;
pub use undefined::{BaseVariables, undefined_variables};

/// Applies all rules to a file.
pub(super) fn check(text: &str, lines: &[Line], file: &Inspection) -> Vec<Refusal> {
    let mut findings = Findings::default();
    keywords::check(lines, &mut findings);
    stages::check(lines, file, &mut findings);
    instructions::check(lines, file, &mut findings);
    secrets::check(file, &mut findings);
    if file.checks.applies(Lint::InvalidDefinitionDescription) {
        comments::check(text, lines, &mut findings);
    }
    findings.0.extend(undefined_variables(file, &|_, _| None));
    findings.0
}
