//! The option `--format` of commands about jobs, images and GPUs, and other options with words for values.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::args::FormatArg;

/// The output format of a command about jobs, images or GPUs.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// Output format
    #[arg(long, value_parser = or_json("table"), default_value = "table")]
    pub format: FormatArg,
}

/// A word and `json`: `table`, `yaml` for a file, `text` for output line by line. The type is that of the global option
/// `--format`, which this one replaces.
pub(crate) fn or_json(word: &'static str) -> impl TypedValueParser<Value = FormatArg> {
    PossibleValuesParser::new([PossibleValue::new(word), PossibleValue::new("json")])
        .map(|word| if word == "json" { FormatArg::Json } else { FormatArg::Text })
}

/// One of some values, by its word.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    values: [T; N],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let of_word = move |text: String| values.into_iter().find(|value| word(*value) == text);
    PossibleValuesParser::new(values.map(word)).map(move |text| of_word(text).unwrap_or(values[0]))
}
