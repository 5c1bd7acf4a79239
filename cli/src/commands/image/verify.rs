//! `jobc image verify`: whether everything in the store is what it should be.

use std::process::ExitCode;

use jobc_image::Store;
use jobc_image::store::Finding;
use serde_json::json;

use crate::args::FormatArg;
use crate::args::image::VerifyArgs;
use crate::commands::jobs::{Result, json_text};
use crate::outcome::Outcome;
use crate::table::visible;
use crate::terminal;

pub(super) fn run(args: &VerifyArgs, store: &Store) -> Result<ExitCode> {
    let findings = store.verify(args.remove)?;
    if args.shown.format == FormatArg::Json {
        let list: Vec<_> = findings.iter().map(|finding| json!({ "message": words(finding) })).collect();
        terminal::print(&json_text(&list));
    } else {
        for finding in &findings {
            terminal::print(&format!("{}\n", visible(&words(finding))));
        }
        if findings.is_empty() {
            terminal::print("everything is what it should be\n");
        } else if !args.remove && findings.iter().any(|finding| matches!(finding, Finding::Changed { .. })) {
            terminal::print(
                "remove what was changed with `jobc image verify --remove`, then pull or import it again\n",
            );
        }
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { (Outcome::Errors as u8).into() })
}

fn words(finding: &Finding) -> String {
    match finding {
        Finding::Changed { digest, removed: false } => format!("{digest}: its content is something else"),
        Finding::Changed { digest, removed: true } => {
            format!("{digest}: its content was something else, and it is removed")
        }
        Finding::Missing { digest, by } => format!("{digest}: `{by}` needs it, and it is not there"),
        Finding::Unreadable { digest, why } => format!("{digest}: {why}"),
        Finding::Foreign { path } => format!("`{path}`: this is no name of a blob"),
    }
}
