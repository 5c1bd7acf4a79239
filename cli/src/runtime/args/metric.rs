//! The options that select a metric to compare.

use clap::Args as ClapArgs;
use jobc_job::metric_choice::MetricChoice;
use jobc_schema::metric::Better;

use super::format::one_of;

/// The compared metrics.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct MetricArgs {
    /// Metric to compare (repeatable) [default: the metrics of the job file, or one that all logs name]
    ///
    /// A metric is a regular expression whose only group matches the number in the log (the last match counts),
    /// FILE:KEY for a number in a JSON or JSON Lines file in data or an output of the job, such as
    /// `/output/result.json:eval.loss`, or a name: of a metric of the job file, or of a number that the log names, such
    /// as `loss` in `loss: 0.5`.
    #[arg(long, value_name = "REGEX|FILE:KEY|NAME")]
    pub metric: Vec<MetricChoice>,
    /// Mark the best value: the lowest or the highest [default: `better` of the metric in the job file]
    #[arg(long, value_parser = one_of([Better::Lower, Better::Higher], Better::as_str),
        value_name = "lower|higher", hide_possible_values = true)]
    pub better: Option<Better>,
}
