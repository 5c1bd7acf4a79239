//! `jobc targets`: lists targets, checks access to clusters, and prints the Role that jobc needs.

use std::process::ExitCode;

use jobc_remote::kubernetes::{Uses, rights};
use jobc_schema::BackendName;
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use super::free;
use crate::args::FormatArg;
use crate::runtime::args::targets::{TargetsArgs, TargetsCheckArgs, TargetsCommand, TargetsLsArgs};
use crate::runtime::commands::jobs::{Failure, Result, json_text, print_list};
use crate::runtime::commands::target_table::TargetTable;
use crate::table::Table;
use crate::terminal;

pub(crate) fn targets(args: &TargetsArgs) -> Result<ExitCode> {
    match &args.command {
        TargetsCommand::Ls(args) => list(args),
        TargetsCommand::Check(args) => check(args),
        TargetsCommand::Free(args) => free::run(args),
        TargetsCommand::Role(args) => {
            let (namespace, uses) = match &args.target {
                Some(target) => {
                    let table = TargetTable::read(args.file.targets.as_deref())?;
                    if let Some(BackendName::Oci | BackendName::Slurm) = table.backend(target) {
                        let message = format!("the target `{target}` is not a cluster of Kubernetes");
                        let error = Error::new(Kind::Unsupported, message);
                        let help = "`jobc targets check` shows what is missing";
                        return Err(Failure::usage_error(error.help(help)));
                    }
                    (table.namespace(target)?, table.uses(target)?)
                }
                None => ("default".to_owned(), Uses::default()),
            };
            terminal::print(&rights::role(&namespace, &uses));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn list(args: &TargetsLsArgs) -> Result<ExitCode> {
    let table = TargetTable::read(args.file.targets.as_deref())?;
    let backends =
        |target: &jobc_schema::target::Target| target.backends.iter().map(|b| b.as_str()).collect::<Vec<_>>();
    let objects = table.all().map(
        |(name, target)| json!({"name": name, "backends": backends(target), "description": target.description}),
    );
    print_list(args.output_args.format, &objects.collect::<Vec<_>>(), || {
        let mut rows = Table::new(["TARGET", "BACKENDS", "DESCRIPTION"]);
        for (name, target) in table.all() {
            let description = target.description.clone().unwrap_or_default();
            rows.row([name.to_owned(), backends(target).join(", "), description]);
        }
        rows
    });
    Ok(ExitCode::SUCCESS)
}

fn check(args: &TargetsCheckArgs) -> Result<ExitCode> {
    let table = TargetTable::read(args.file.targets.as_deref())?;
    let checks = table.place(&args.target)?.check_access()?;
    let is_usable = checks.iter().all(|check| check.is_allowed || check.is_optional);
    if args.output_args.format == FormatArg::Json {
        terminal::print(&json_text(&json!({"target": args.target, "usable": is_usable, "checks": checks})));
    } else {
        let mut rows = Table::new(["", "WHAT", "NEEDED FOR"]);
        for check in &checks {
            let mark = match (check.is_allowed, check.is_optional) {
                (true, _) => "ok",
                (false, true) => "no",
                (false, false) => "MISSING",
            };
            rows.row([mark.to_owned(), check.what.clone(), check.needed_for.to_owned()]);
        }
        terminal::print(&rows.render(terminal::columns_of_stdout()));
        if !is_usable && table.backend(&args.target) == Some(BackendName::Kubernetes) {
            let command = format!("jobc targets role {}", args.target);
            terminal::eprint(&format!(
                "ask an administrator for the missing rights; `{command}` prints a Role with them\n"
            ));
        }
    }
    Ok(if is_usable { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
