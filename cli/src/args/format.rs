//! The option `--format`.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use jobc_compiler::diagnostic::render::Format;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Text with source excerpts
    Text,
    /// One line per finding
    Short,
    /// JSON
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations for GitHub Actions
    Github,
    /// YAML, for a plan
    #[value(skip)]
    Yaml,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Text | FormatArg::Yaml => Self::Text,
            FormatArg::Short => Self::Short,
            FormatArg::Json => Self::Json,
            FormatArg::Sarif => Self::Sarif,
            FormatArg::Github => Self::Github,
        }
    }
}

/// The output format of a command about jobs, images or GPUs.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// Output format
    #[arg(long, value_parser = table_or_json(), default_value = "table")]
    pub format: FormatArg,
}

/// The formats `table` and `json`; the type is that of the global option `--format`, which this one replaces.
pub(crate) fn table_or_json() -> impl TypedValueParser<Value = FormatArg> {
    PossibleValuesParser::new([PossibleValue::new("table"), PossibleValue::new("json")])
        .map(|word| if word == "json" { FormatArg::Json } else { FormatArg::Text })
}

/// The formats of `jobc plan`: a summary, or the plan as a file; and the formats of findings, with a plan in YAML.
pub(crate) fn of_plan() -> impl TypedValueParser<Value = FormatArg> {
    PossibleValuesParser::new([
        PossibleValue::new("text").help("Summary on one screen"),
        PossibleValue::new("yaml").help("The plan as YAML"),
        PossibleValue::new("json").help("The plan as JSON"),
        PossibleValue::new("short"),
        PossibleValue::new("sarif"),
        PossibleValue::new("github"),
    ])
    .map(|word| match word.as_str() {
        "yaml" => FormatArg::Yaml,
        "json" => FormatArg::Json,
        "short" => FormatArg::Short,
        "sarif" => FormatArg::Sarif,
        "github" => FormatArg::Github,
        _ => FormatArg::Text,
    })
}

/// The formats `yaml` and `json`, for a file.
#[cfg(target_os = "linux")]
pub(crate) fn yaml_or_json() -> impl TypedValueParser<Value = FormatArg> {
    PossibleValuesParser::new([PossibleValue::new("yaml"), PossibleValue::new("json")])
        .map(|word| if word == "json" { FormatArg::Json } else { FormatArg::Text })
}

/// The formats `text` and `json`, for output line by line.
#[cfg(target_os = "linux")]
pub(crate) fn text_or_json() -> impl TypedValueParser<Value = FormatArg> {
    PossibleValuesParser::new([PossibleValue::new("text"), PossibleValue::new("json")])
        .map(|word| if word == "json" { FormatArg::Json } else { FormatArg::Text })
}
