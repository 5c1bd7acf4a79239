//! `jobc image verify --key KEY IMAGE`: verifies the signature of an image in a registry.

use std::process::ExitCode;

use serde_json::json;

use crate::args::FormatArg;
use crate::outcome::Outcome;
use crate::runtime::args::image::VerifyArgs;
use crate::runtime::commands::jobs::{Failure, Result, json_text};
use crate::runtime::signatures::{self, Found, Keys};
use crate::table::escape_control;
use crate::terminal;

pub(super) fn run(args: &VerifyArgs, name: &str) -> Result<ExitCode> {
    let keys = Keys::read(&args.key, args.any_name).map_err(Failure::usage_error)?;
    let (image, found) = signatures::look(name, &keys, args.plain_http)?;
    let is_json = args.output_args.format == FormatArg::Json;
    Ok(match found {
        Found::Signed { key, place, repository } => {
            terminal::print(&if is_json {
                json_text(&json!({
                    "image": image, "verified": true, "key": key, "signature": place, "repository": repository,
                }))
            } else {
                format!("{image}: signed by `{key}` ({place})\n")
            });
            ExitCode::SUCCESS
        }
        Found::Refused(why) => {
            if is_json {
                terminal::print(&json_text(&json!({ "image": image, "verified": false, "reason": why })));
            } else {
                terminal::eprint(&format!("jobc: {}\n", escape_control(&why)));
            }
            (Outcome::Errors as u8).into()
        }
    })
}
