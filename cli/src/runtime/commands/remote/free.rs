//! `jobc targets free`: what is free at targets.

use std::process::ExitCode;

use jobc_remote::place::{Amount, Capacity};
use serde_json::json;

use crate::runtime::args::targets::TargetsFreeArgs;
use crate::runtime::commands::jobs::{Result, print_list};
use crate::runtime::commands::target_table::TargetTable;
use crate::runtime::commands::target_table::listing;
use crate::runtime::message::container_warning;
use crate::table::Table;
use crate::terminal;

pub(super) fn run(args: &TargetsFreeArgs) -> Result<ExitCode> {
    let table = TargetTable::read(args.file.targets.as_deref())?;
    let names = if args.names.is_empty() {
        table.clusters()
    } else {
        args.names.iter().map(String::as_str).collect()
    };
    let mut found: Vec<(String, Capacity)> = Vec::new();
    for (name, answer) in listing::of_each(&table, &names, |place| place.capacity()) {
        match answer {
            Ok(rows) => found.extend(rows.into_iter().map(|row| (name.clone(), row))),
            // Of several targets, one may not be reachable.
            Err(error) if names.len() > 1 => {
                terminal::eprint(&container_warning(&format!("target `{name}`: {}", error.message())));
            }
            Err(error) => return Err(error),
        }
    }
    let object = |(target, row): &(String, Capacity)| {
        let mut value = json!(row);
        value["target"] = target.as_str().into();
        value
    };
    print_list(args.output_args.format, &found.iter().map(object).collect::<Vec<_>>(), || rows(&found));
    Ok(ExitCode::SUCCESS)
}

fn rows(found: &[(String, Capacity)]) -> Table {
    let mut table = Table::new(["TARGET", "WHAT", "NODES", "GPUS", "CPUS", "WAITING", "NOTE"]);
    for (target, row) in found {
        table.row([
            target.clone(),
            row.name.clone(),
            amount(row.nodes),
            amount(row.gpus),
            amount(row.cpus),
            row.waiting.map_or_else(|| "-".to_owned(), |count| count.to_string()),
            row.note.clone().unwrap_or_default(),
        ]);
    }
    table
}

/// `3 of 8`.
fn amount(amount: Option<Amount>) -> String {
    match amount {
        Some(Amount { free: Some(free), total }) => format!("{free} of {total}"),
        Some(Amount { free: None, total }) => format!("? of {total}"),
        None => "-".to_owned(),
    }
}
