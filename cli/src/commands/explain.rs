//! `jobc explain`: prints the page of a diagnostic code, or what a field means.

mod field;

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
    if let Some(page) = field::describe(text) {
        terminal::print(&page);
        return Outcome::Success;
    }
    terminal::eprint(&unknown(text));
    Outcome::UsageError
}

fn unknown(text: &str) -> String {
    let looks_like_code = text.starts_with(['J', 'j']) && text.bytes().any(|b| b.is_ascii_digit());
    let (what, near, list) = if looks_like_code {
        let upper = text.to_ascii_uppercase();
        let near = suggest::nearest(&upper, Code::all().map(|(code, _)| code.as_str()));
        ("code", near.map(str::to_owned), "`jobc explain` lists all codes")
    } else {
        let names = field::names();
        let near = suggest::nearest(text, names.iter().map(String::as_str)).map(str::to_owned);
        ("code or field", near, "`jobc explain` lists all codes, `jobc schema` all fields")
    };
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("jobc: unknown {what} `{text}`{near} ({list})\n")
}
