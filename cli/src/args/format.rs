//! How a command shows what it found: `--format`.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use jobc_compiler::diagnostic::render::Format;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// With excerpts, for people
    Text,
    /// One line a finding
    Short,
    /// For programs
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub Actions
    Github,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Text => Self::Text,
            FormatArg::Short => Self::Short,
            FormatArg::Json => Self::Json,
            FormatArg::Sarif => Self::Sarif,
            FormatArg::Github => Self::Github,
        }
    }
}

/// How a command shows what it found or did.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Shown {
    /// How it is shown
    #[arg(long, value_parser = table_or_json(), default_value = "table")]
    pub format: FormatArg,
}

/// The two ways to show a list; the type is that of the option `--format` of all commands, which this one takes the
/// place of.
pub(crate) fn table_or_json() -> impl TypedValueParser<Value = FormatArg> {
    PossibleValuesParser::new([PossibleValue::new("table"), PossibleValue::new("json")])
        .map(|word| if word == "json" { FormatArg::Json } else { FormatArg::Text })
}

/// `yaml` or `json`, for a file.
#[cfg(target_os = "linux")]
pub(crate) fn yaml_or_json() -> impl TypedValueParser<Value = FormatArg> {
    PossibleValuesParser::new([PossibleValue::new("yaml"), PossibleValue::new("json")])
        .map(|word| if word == "json" { FormatArg::Json } else { FormatArg::Text })
}

/// `text` or `json`, for lines that come one by one.
#[cfg(target_os = "linux")]
pub(crate) fn text_or_json() -> impl TypedValueParser<Value = FormatArg> {
    PossibleValuesParser::new([PossibleValue::new("text"), PossibleValue::new("json")])
        .map(|word| if word == "json" { FormatArg::Json } else { FormatArg::Text })
}
