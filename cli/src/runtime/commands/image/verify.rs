//! `jobc image verify`: verifies the integrity of the image store.

use std::process::ExitCode;

use jobc_image::Store;
use jobc_image::store::Finding;
use serde_json::json;

use crate::args::FormatArg;
use crate::outcome::Outcome;
use crate::runtime::args::image::VerifyArgs;
use crate::runtime::commands::jobs::{Result, json_text};
use crate::table::escape_control;
use crate::terminal;

pub(super) fn run(args: &VerifyArgs, store: &Store) -> Result<ExitCode> {
    let findings = store.verify(args.remove)?;
    if args.output_args.format == FormatArg::Json {
        let list: Vec<_> =
            findings.iter().map(|finding| json!({ "message": describe_finding(finding) })).collect();
        terminal::print(&json_text(&list));
    } else {
        for finding in &findings {
            terminal::print(&format!("{}\n", escape_control(&describe_finding(finding))));
        }
        if findings.is_empty() {
            terminal::print("no errors found\n");
        } else if !args.remove && findings.iter().any(|finding| matches!(finding, Finding::Changed { .. })) {
            terminal::print(
                "remove corrupted blobs with `jobc image verify --remove`, then pull or import them again\n",
            );
        }
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { (Outcome::Errors as u8).into() })
}

fn describe_finding(finding: &Finding) -> String {
    match finding {
        Finding::Changed { digest, removed: false } => {
            format!("{digest}: the content does not match the digest")
        }
        Finding::Changed { digest, removed: true } => {
            format!("{digest}: the content did not match the digest; removed")
        }
        Finding::Missing { digest, by } => format!("{digest}: missing, and required by `{by}`"),
        Finding::Unreadable { digest, why } => format!("{digest}: {why}"),
        Finding::Foreign { path } => format!("`{path}`: not the name of a blob"),
    }
}
