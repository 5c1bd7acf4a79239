//! An origin in words.

use jobc_compiler::why::source_map::{Part, dotted};

/// The origin of a part in one line; `path` is that of the job file, if it is more than its name.
pub(crate) fn sentence(part: &Part, path: Option<&str>, target: &str) -> String {
    if let Some(spec) = &part.spec {
        let [line, column] = part.start.unwrap_or([1, 1]);
        return match path.or(part.file.as_deref()) {
            Some(path) => format!("`{}` at {path}:{line}:{column}", dotted(spec)),
            None => format!("`{}` of the job", dotted(spec)),
        };
    }
    if let Some(setting) = &part.target {
        return format!("the setting `{}` of the target `{target}`", dotted(setting));
    }
    part.default.clone().unwrap_or_default()
}
