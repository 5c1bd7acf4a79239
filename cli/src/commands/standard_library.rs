//! `jobc std`: the built-in templates, what each takes, and an example of each.

use jobc_compiler::suggest;
use jobc_compiler::template::Description;
use serde_json::{Value, json};

use crate::args::FormatArg;
use crate::args::standard_library::StdCommand;
use crate::examples::{BuiltIn, templates};
use crate::outcome::Outcome;
use crate::table::Table;
use crate::terminal;

pub(crate) fn run(command: &StdCommand, format: FormatArg) -> Outcome {
    let is_json = format == FormatArg::Json;
    match command {
        StdCommand::Ls if is_json => print_json(&templates().map(|template| document(&template)).collect()),
        StdCommand::Ls => {
            let mut table = Table::new(["TEMPLATE", "KIND", "DESCRIPTION"]);
            for template in templates() {
                let Description { kind, description, .. } = template.describe();
                table.row([format!("std/{}", template.name), kind.to_owned(), description]);
            }
            terminal::print(&table.render(None));
            Outcome::Success
        }
        StdCommand::Show { name, source } => {
            let wanted = name.strip_prefix("std/").unwrap_or(name);
            let Some(template) = templates().find(|template| template.name == wanted) else {
                terminal::eprint(&unknown(name));
                return Outcome::UsageError;
            };
            if is_json {
                return print_json(&document(&template));
            }
            terminal::print(&if *source { template.text.to_owned() } else { page(&template) });
            Outcome::Success
        }
    }
}

/// The page of a template for people.
fn page(template: &BuiltIn) -> String {
    let Description { kind, description, notes, params } = template.describe();
    let name = template.name;
    let mut table = Table::new(["PARAMETER", "VALUE", "DEFAULT", "MEANING"]);
    for param in &params {
        let default = match &param.default {
            Some(text) if text.is_empty() => "\"\"".to_owned(),
            Some(text) => text.clone(),
            None => "required".to_owned(),
        };
        table.row([param.name.clone(), param.rule(), default, param.description.clone()]);
    }
    format!(
        "std/{name} (for a {kind}): {description}\n\n{}\n{}\n{notes}\n\n\
         `jobc std show {name} --source` prints the template, `jobc init -e std/{name} DIR` writes the example\n",
        template.example_text(),
        table.render(None),
    )
}

/// All of a template, for programs.
fn document(template: &BuiltIn) -> Value {
    let description = template.describe();
    let params: Vec<Value> = description
        .params
        .iter()
        .map(|param| {
            json!({
                "name": param.name,
                "type": param.type_name(),
                "rule": param.rule(),
                "default": param.default_value,
                "required": param.default.is_none(),
                "choices": param.choices,
                "description": param.description,
            })
        })
        .collect();
    json!({
        "name": format!("std/{}", template.name),
        "kind": description.kind,
        "description": description.description,
        "notes": description.notes,
        "params": params,
        "schema": description.schema(),
        "example": template.example_text(),
        "source": template.text,
    })
}

fn print_json(value: &Value) -> Outcome {
    terminal::print(&format!("{value:#}\n"));
    Outcome::Success
}

/// Reports a name that no built-in template has.
pub(crate) fn unknown(name: &str) -> String {
    let wanted = name.strip_prefix("std/").unwrap_or(name);
    let near = suggest::nearest(wanted, templates().map(|template| template.name));
    let near = near.map(|near| format!("; did you mean `std/{near}`?")).unwrap_or_default();
    format!("jobc: unknown template `{}`{near} (`jobc std ls` lists the templates)\n", name.escape_debug())
}
