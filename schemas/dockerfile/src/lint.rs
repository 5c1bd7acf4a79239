//! What every builder accepts and that is probably not meant: the rules of `docker build --check` ([`Lint`]).
//!
//! A rule is applied to the file alone. What it takes a context to know is in [`ignored_sources`], what it takes base
//! images to know in [`undefined_variables`]. A finding is reported only where it is certain: a variable that a base
//! image may define is not.

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
