//! The options that select a metric to compare.

use clap::{Args as ClapArgs, ValueEnum};
use jobc_job::metric_choice::MetricChoice;
use jobc_schema::metric::Better;

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
    #[arg(long, value_enum, value_name = "lower|higher", hide_possible_values = true)]
    pub better: Option<BetterArg>,
}

/// Which values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BetterArg {
    Lower,
    Higher,
}

impl From<BetterArg> for Better {
    fn from(better: BetterArg) -> Self {
        match better {
            BetterArg::Lower => Self::Lower,
            BetterArg::Higher => Self::Higher,
        }
    }
}
