//! Files of the context that are not sent to a builder.

use std::fmt::Write as _;

use jobc_dockerfile::ignore::LEFT_OUT;
use jobc_schema::plan::{JobPlan, VolumeKind, VolumeSource};

use crate::backend::Context;

use super::copy::inside_context;

/// The rules next to a Dockerfile: ours, without those for files that the job copies by name, then the user's own
/// `.dockerignore`.
///
/// A builder that finds this file does not read `.dockerignore`, so its lines are included.
pub(super) fn rules(job: &JobPlan, copied: &[String], context: &Context<'_>) -> String {
    let mut text = String::from("# Left out of the build context; see docs/reference/dockerfile.md.\n");
    for (reason, patterns) in LEFT_OUT {
        let _ = write!(text, "\n# {reason}\n");
        for pattern in *patterns {
            let _ = writeln!(text, "{pattern}");
        }
    }
    let outputs: Vec<String> = job
        .volumes
        .values()
        .filter(|volume| volume.kind == VolumeKind::Output)
        .filter_map(|volume| match &volume.source {
            VolumeSource::Path { path } => inside_context(path),
            _ => None,
        })
        .filter(|path| path != "." && !path.contains(['\n', '\r']))
        .collect();
    if !outputs.is_empty() {
        text.push_str("\n# what the job itself writes\n");
        for path in &outputs {
            let _ = writeln!(text, "{}", literal(path));
        }
    }
    let mut kept: Vec<String> = copied
        .iter()
        .filter(|path| *path != "." && is_left_out(path, &outputs))
        .map(|path| literal(path))
        .collect();
    kept.dedup();
    if !kept.is_empty() {
        text.push_str("\n# named by the job\n");
        for path in &kept {
            let _ = writeln!(text, "!{path}");
        }
    }
    if let Ok(own) = context.files.read(".dockerignore".into()) {
        text.push_str("\n# from .dockerignore\n");
        text.push_str(String::from_utf8_lossy(&own).trim_end());
        text.push('\n');
    }
    text
}

/// A path as a pattern that matches only itself.
fn literal(path: &str) -> String {
    let mut out = String::new();
    for (i, c) in path.chars().enumerate() {
        if "*?[\\".contains(c) || (i == 0 && "!#".contains(c)) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Whether one of our patterns would exclude a copied path or one of its parents.
fn is_left_out(path: &str, outputs: &[String]) -> bool {
    let under = |directory: &str| {
        path == directory || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
    };
    let ours = LEFT_OUT.iter().flat_map(|(_, patterns)| *patterns).any(|pattern| {
        match pattern.strip_prefix("**/") {
            Some("*.pyc") => path.strip_suffix(".pyc").is_some(),
            Some(name) => path.split('/').any(|part| part == name),
            None if *pattern == ".env.*" => path.starts_with(".env."),
            None => under(pattern),
        }
    });
    ours || outputs.iter().any(|output| under(output))
}
