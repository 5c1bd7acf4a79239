//! `jobc schema`: prints the published JSON Schemas.

use jobc_schema::{JOB_SCHEMA, PLAN_SCHEMA, TARGETS_SCHEMA};

use crate::args::SchemaArg;
use crate::outcome::Outcome;
use crate::terminal;

pub(crate) fn run(name: SchemaArg) -> Outcome {
    terminal::print(match name {
        SchemaArg::Job => JOB_SCHEMA,
        SchemaArg::Targets => TARGETS_SCHEMA,
        SchemaArg::Plan => PLAN_SCHEMA,
    });
    Outcome::Success
}
