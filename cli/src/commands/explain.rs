//! `jobc explain`: prints the page of a diagnostic code, what a field means, or what jobc has for a system by name.

use jobc_compiler::diagnostic::Code;
use jobc_compiler::stdlib::systems::{self, System};
use jobc_compiler::suggest;
use serde_json::{Value, json};

use crate::args::FormatArg;
use crate::fields::{self, Field};
use crate::outcome::Outcome;
use crate::terminal;

/// Maximum number of places of a field that are described in full.
const MAX_PLACES: usize = 4;

pub(crate) fn run(topic: Option<&str>, format: FormatArg) -> Outcome {
    let is_json = format == FormatArg::Json;
    let Some(text) = topic else {
        if is_json {
            print_json(&all());
        } else {
            let lines: String = Code::all().map(|(code, title)| format!("{code}  {title}\n")).collect();
            terminal::print(&lines);
        }
        return Outcome::Success;
    };
    if let Some(code) = Code::parse(text) {
        if is_json {
            print_json(&json!({"code": code.as_str(), "title": code.title(), "page": code.page()}));
        } else {
            terminal::print(code.page());
        }
        return Outcome::Success;
    }
    let places = fields::find(text);
    let system = systems::find(text);
    if places.is_empty() && system.is_none() {
        terminal::eprint(&unknown(text));
        return Outcome::UsageError;
    }
    if is_json {
        let pages = places.iter().map(
            |field| json!({"field": field.name(), "format": field.format.name, "page": fields::page(field)}),
        );
        let system = system.map(|system| json!({"system": system.name, "answer": system}));
        print_json(&pages.chain(system).collect::<Vec<_>>().into());
    } else {
        let fields = if places.is_empty() { String::new() } else { pages(&places) };
        let between = if places.is_empty() || system.is_none() { "" } else { "\n" };
        terminal::print(&format!("{fields}{between}{}", system.map(system_page).unwrap_or_default()));
    }
    Outcome::Success
}

/// The pages of the first places, and the names of the others.
fn pages(places: &[&Field]) -> String {
    let shown = &places[..places.len().min(MAX_PLACES)];
    let mut text = shown.iter().map(|field| fields::page(field)).collect::<Vec<_>>().join("\n");
    let others: Vec<String> = places.iter().skip(MAX_PLACES).map(|field| field.name()).collect();
    if !others.is_empty() {
        text += &format!("\nalso: {}\n", others.join(", "));
    }
    text
}

/// The page of a system or term: what it is, and what jobc has for it.
fn system_page(system: &System) -> String {
    let also = if system.aliases.is_empty() {
        String::new()
    } else {
        format!("\n\nAlso: {}.", system.aliases.join(", "))
    };
    let System { name, about, verdict, answer, .. } = system;
    format!("# {name}\n\n{name}: {about}.\n\n{}: {answer}.{also}\n", verdict.as_str())
}

/// Everything that can be explained: the codes, and the reference of both formats.
fn all() -> Value {
    let codes: Vec<Value> = Code::all()
        .map(|(code, title)| json!({"code": code.as_str(), "title": title, "page": code.page()}))
        .collect();
    let formats: Vec<Value> = fields::Format::all().iter().map(fields::document).collect();
    json!({"codes": codes, "formats": formats})
}

fn print_json(value: &Value) {
    terminal::print(&format!("{value:#}\n"));
}

fn unknown(text: &str) -> String {
    let looks_like_code = text.starts_with(['J', 'j']) && text.bytes().any(|b| b.is_ascii_digit());
    let (what, near, list) = if looks_like_code {
        let upper = text.to_ascii_uppercase();
        let near = suggest::nearest(&upper, Code::all().map(|(code, _)| code.as_str()));
        ("code", near.map(str::to_owned), "`jobc explain` lists all codes")
    } else {
        let names = systems::all().iter().flat_map(System::names);
        let near = fields::nearest(text).or_else(|| suggest::nearest(text, names).map(str::to_owned));
        ("code or field", near, "`jobc explain` lists all codes, `jobc schema` all fields")
    };
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("jobc: unknown {what} `{}`{near} ({list})\n", text.escape_debug())
}
