//! The option `--format` of commands about jobs, images and GPUs.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::args::FormatArg;

/// The output format of a command about jobs, images or GPUs.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// Output format
    #[arg(long, value_parser = table_or_json(), default_value = "table")]
    pub format: FormatArg,
}

/// The formats `table` and `json`; the type is that of the global option `--format`, which this one replaces.
fn table_or_json() -> impl TypedValueParser<Value = FormatArg> {
    PossibleValuesParser::new([PossibleValue::new("table"), PossibleValue::new("json")])
        .map(|word| if word == "json" { FormatArg::Json } else { FormatArg::Text })
}

/// The formats `yaml` and `json`, for a file.
pub(crate) fn yaml_or_json() -> impl TypedValueParser<Value = FormatArg> {
    PossibleValuesParser::new([PossibleValue::new("yaml"), PossibleValue::new("json")])
        .map(|word| if word == "json" { FormatArg::Json } else { FormatArg::Text })
}

/// The formats `text` and `json`, for output line by line.
pub(crate) fn text_or_json() -> impl TypedValueParser<Value = FormatArg> {
    PossibleValuesParser::new([PossibleValue::new("text"), PossibleValue::new("json")])
        .map(|word| if word == "json" { FormatArg::Json } else { FormatArg::Text })
}
