//! `jobc explain`: prints the page of a diagnostic code.

use jobc_compiler::diagnostic::Code;
use jobc_compiler::suggest;

use crate::outcome::Outcome;
use crate::terminal;

pub(crate) fn run(code: Option<&str>) -> Outcome {
    let Some(text) = code else {
        let lines: String = Code::all().map(|(code, title)| format!("{code}  {title}\n")).collect();
        terminal::print(&lines);
        return Outcome::Success;
    };
    if let Some(code) = Code::parse(text) {
        terminal::print(code.page());
        return Outcome::Success;
    }
    let near = suggest::nearest(&text.to_ascii_uppercase(), Code::all().map(|(code, _)| code.as_str()))
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    terminal::eprint(&format!("jobc: unknown code `{text}`{near} (`jobc explain` lists all codes)\n"));
    Outcome::UsageError
}
