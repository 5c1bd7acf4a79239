//! `jobc image history`: shows how an image was made, the last step first.

use std::process::ExitCode;

use jobc_image::config::History;
use jobc_image::{Descriptor, Image, Store};
use serde_json::json;

use super::name::{find, platform};
use crate::args::FormatArg;
use crate::runtime::args::image_tools::HistoryArgs;
use crate::runtime::commands::jobs::{Result, json_text};
use crate::runtime::quantity::bytes;
use crate::table::{Table, escape_control};
use crate::terminal;

/// How many characters of a command are shown unless all of it is requested.
const MAX_COMMAND_LENGTH: usize = 60;

/// A step, with the layer that it made.
struct Step {
    history: History,
    layer: Option<Descriptor>,
}

pub(super) fn run(args: &HistoryArgs, store: &Store) -> Result<ExitCode> {
    let platform = platform(args.platform.as_deref())?;
    let image = store.image(&find(store, &args.image)?.descriptor, &platform)?;
    let steps = steps(&image);
    if args.output_args.format == FormatArg::Json {
        let list: Vec<_> = steps
            .iter()
            .map(|Step { history, layer }| {
                json!({
                    "layer": layer.as_ref().map(|layer| &layer.digest),
                    "size_bytes": layer.as_ref().map_or(0, |layer| layer.size),
                    "created": history.created,
                    "created_by": history.created_by,
                    "author": history.author,
                    "comment": history.comment,
                })
            })
            .collect();
        terminal::print(&json_text(&list));
        return Ok(ExitCode::SUCCESS);
    }
    let digest = |layer: &Descriptor| {
        if args.no_trunc { layer.digest.to_string() } else { layer.digest.short().to_owned() }
    };
    if args.quiet {
        for layer in steps.iter().filter_map(|step| step.layer.as_ref()) {
            terminal::print(&format!("{}\n", digest(layer)));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["LAYER", "CREATED", "SIZE", "CREATED BY", "COMMENT"]);
    for Step { history, layer } in &steps {
        let created = history.created.as_deref().unwrap_or_default();
        let size = layer.as_ref().map_or(0, |layer| layer.size);
        let command = history.created_by.as_deref().unwrap_or_default();
        table.row([
            layer.as_ref().map_or_else(|| "-".to_owned(), digest),
            if args.human { created.split('T').next().unwrap_or_default() } else { created }.to_owned(),
            if args.human { bytes(size) } else { size.to_string() },
            if args.no_trunc { command.to_owned() } else { shortened(command) },
            history.comment.clone().unwrap_or_default(),
        ]);
    }
    let columns = if args.no_trunc { None } else { terminal::columns_of_stdout() };
    terminal::print(&table.render(columns));
    Ok(ExitCode::SUCCESS)
}

/// The steps of an image, the last first. Layers that its history does not name come as steps without a command.
fn steps(image: &Image) -> Vec<Step> {
    let mut layers = image.manifest.layers.iter().cloned();
    let history = image.config.history.iter().cloned();
    let mut steps: Vec<Step> = history
        .map(|history| {
            let layer = if history.empty_layer { None } else { layers.next() };
            Step { history, layer }
        })
        .collect();
    steps.extend(layers.map(|layer| Step { history: History::default(), layer: Some(layer) }));
    steps.reverse();
    steps
}

/// A command in one line, cut.
fn shortened(command: &str) -> String {
    let line = escape_control(&command.split_whitespace().collect::<Vec<_>>().join(" "));
    match line.char_indices().nth(MAX_COMMAND_LENGTH) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_line() {
        assert_eq!(shortened("RUN a \\\n  && b"), "RUN a \\ && b");
        assert_eq!(shortened(&"ä".repeat(80)), format!("{}…", "ä".repeat(60)));
    }
}
