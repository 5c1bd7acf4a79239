//! The flags of an instruction and their values.

use super::super::forms::Word;
use super::super::split::Flag;
use super::scope::Scope;

pub(super) fn unknown_flag(instruction: &str, flag: &Flag<'_>, known: &[&str], scope: &mut Scope<'_>) {
    let help = if known.is_empty() {
        format!("`{instruction}` has no flags")
    } else {
        let list: Vec<String> = known.iter().map(|name| format!("`--{name}`")).collect();
        format!("`{instruction}` has {}", list.join(", "))
    };
    scope.problems.wrong(
        flag.part.span(),
        format!("unknown flag `--{}` of `{instruction}`", flag.name),
        &help,
    );
}

/// The word that is a flag's value.
pub(super) fn flag_value(instruction: &str, flag: &Flag<'_>, scope: &mut Scope<'_>) -> Option<Word> {
    match &flag.value {
        Some(value) if !value.is_empty() => Some(Word { text: value.clone(), span: flag.value_part.span() }),
        _ => {
            let name = &flag.name;
            let message = format!("`{instruction} --{name}` has no value");
            scope.problems.wrong(flag.part.span(), message, &format!("write `--{name}=VALUE`"));
            None
        }
    }
}

/// The value of a boolean flag: without a value, or `=true` or `=false`.
pub(super) fn flag_bool(instruction: &str, flag: &Flag<'_>, scope: &mut Scope<'_>) -> Option<bool> {
    match flag.value.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => {
            let message = format!("`{instruction} --{}` must be `true` or `false`", flag.name);
            scope.problems.wrong(flag.value_part.span(), message, "without a value it is `true`");
            None
        }
    }
}
