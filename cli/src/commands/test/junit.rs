//! The report in the JUnit XML format, as Jenkins, GitLab and GitHub's actions read it.
//!
//! A job file is a `testsuite`, and a job for a target a `testcase`. The format has five elements here; the libraries
//! for it bring an XML writer and a clock with them.

use std::fmt::Write as _;

use anstream::adapter::strip_str;

use super::case::{CaseResult, State, TargetResult};
use super::print::{Totals, differences};

pub(super) fn report(results: &[CaseResult], totals: &Totals) -> String {
    let suites: Vec<Suite> = results.iter().map(suite).collect();
    let sum = |get: fn(&Suite) -> usize| suites.iter().map(get).sum::<usize>();
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let _ = writeln!(
        out,
        "<testsuites name=\"jobc test\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3}\">",
        sum(|suite| suite.tests),
        sum(|suite| suite.failures),
        sum(|suite| suite.errors),
        totals.took.as_secs_f64()
    );
    for Suite { text, .. } in &suites {
        out += text;
    }
    out + "</testsuites>\n"
}

struct Suite {
    tests: usize,
    failures: usize,
    errors: usize,
    text: String,
}

fn suite(result: &CaseResult) -> Suite {
    let file = escaped(result.file.as_str());
    let seconds = result.took.as_secs_f64();
    let mut suite = Suite { tests: 0, failures: 0, errors: 0, text: String::new() };
    let mut cases = String::new();
    let mut case = |name: &str, inner: Option<(&str, &str, &str)>, seconds: f64| {
        let _ = write!(
            cases,
            "    <testcase classname=\"{file}\" name=\"{}\" time=\"{seconds:.3}\"",
            escaped(name)
        );
        cases += &match inner {
            None => "/>\n".to_owned(),
            Some((element, message, text)) => format!(
                ">\n      <{element} message=\"{}\">{}</{element}>\n    </testcase>\n",
                escaped(message),
                escaped(text)
            ),
        };
    };
    if let Some(error) = &result.error {
        case("compile", Some(("error", &error.summary, &error.text)), seconds);
        (suite.tests, suite.errors) = (1, 1);
    } else {
        // A job file is compiled as a whole; its first case has the time.
        let mut rest = seconds;
        for target in &result.targets {
            let name = format!("{} at {}", target.job, target.target);
            let message = message(target);
            let text = differences(target);
            let failure = message.as_deref().filter(|_| !result.accepted);
            case(&name, failure.map(|message| ("failure", message, &*text)), std::mem::take(&mut rest));
            suite.failures += usize::from(failure.is_some());
            suite.tests += 1;
        }
        for path in &result.obsolete {
            let message = format!("`{}/{path}` belongs to no job or target", result.golden);
            case(path.as_str(), Some(("failure", &*message, "")).filter(|_| !result.accepted), 0.0);
            suite.failures += usize::from(!result.accepted);
            suite.tests += 1;
        }
    }
    suite.text = format!(
        "  <testsuite name=\"{file}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{seconds:.3}\">\n{cases}  </testsuite>\n",
        suite.tests, suite.failures, suite.errors
    );
    suite
}

fn message(target: &TargetResult) -> Option<String> {
    match &target.state {
        State::Same => None,
        State::New => Some("no golden files".to_owned()),
        State::Changed(files) if files.len() == 1 => Some("1 file differs from the golden files".to_owned()),
        State::Changed(files) => Some(format!("{} files differ from the golden files", files.len())),
    }
}

/// Text in XML 1.0, which has no form at all for most control characters: those and colors are left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in strip_str(text).to_string().chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' | '\t' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn any_text_is_escaped_in_the_report() {
        assert_eq!(
            escaped("a < b && \"c\" > d\n\u{1b}[31mred\u{1b}[0m\u{7}你"),
            "a &lt; b &amp;&amp; &quot;c&quot; &gt; d\nred你"
        );
    }
}
