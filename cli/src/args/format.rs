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
