//! The user's own Dockerfile: extracts facts about the image and reports mistakes at their lines.
//!
//! Nothing is rewritten or run. Facts that need a build, such as settings of a base image, are absent.

mod context;
mod facts;
mod finding;
mod ignored;
mod images;
mod lint;
mod locked;
mod request;
#[cfg(test)]
mod tests;

use jobc_dockerfile::{Options, Rule};

use crate::diagnostic::{Severity, Sink};

pub use facts::Facts;
pub use finding::{diagnostic, severity_of_remark};
pub use images::inspect_images;
pub use request::Request;

/// Reads a Dockerfile and reports its mistakes; `None` if it cannot be built.
pub fn inspect(request: &Request<'_>, sink: &mut Sink) -> Option<Facts> {
    let args: Vec<(String, String)> =
        request.args.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let options =
        Options { args: &args, target: request.target, platform: PLATFORM, build_platform: PLATFORM };
    let file = jobc_dockerfile::inspect(request.bytes, &options);
    for refusal in &file.refusals {
        // Another builder may be able to.
        let severity = if refusal.rule == Rule::Unsupported { Severity::Note } else { Severity::Error };
        request.push(refusal, severity, sink);
    }
    for remark in &file.remarks {
        request.push(remark, severity_of_remark(remark), sink);
    }
    let stages = facts::Stages::read(&file);
    lint::lint(&stages, request, sink);
    context::check(&stages, request, sink);
    ignored::check(&file, request, sink);
    if file.refusals.iter().any(|refusal| refusal.rule != Rule::Unsupported) {
        return None;
    }
    let locked = locked::locked(&file, request, sink);
    Some(Facts { locked, ..stages.facts(file.target?) })
}

/// The platform that files are evaluated for. Results that depend on it are not reported.
const PLATFORM: &str = "linux/amd64";
