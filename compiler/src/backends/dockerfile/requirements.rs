//! Requirements files and the files they name.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_schema::Pointer;
use jobc_schema::gpu::OneOrMany;
use jobc_schema::image::Python;

use crate::diagnostic::{Diagnostic, codes};
use crate::emit::dockerfile::Kind;

use super::build::Build;
use super::copy::inside_context;

/// The directory for files that only the build reads.
pub(super) const DIRECTORY: &str = "/opt/jobc";

/// Copies the requirements files by themselves, before anything else of the job, so that the installed packages stay
/// cached until one of them changes; returns their paths in the image.
pub(super) fn copy(build: &mut Build<'_>, wanted: &Python, at: &Pointer) -> Vec<String> {
    let at = at.key("requirements");
    let named: Vec<(&str, Pointer)> = match &wanted.requirements {
        None => vec![],
        Some(OneOrMany::One(path)) => vec![(path, at)],
        Some(OneOrMany::Many(paths)) => {
            paths.iter().enumerate().map(|(i, path)| (path.as_str(), at.index(i))).collect()
        }
    };
    let mut copied: Vec<String> = Vec::new();
    let mut installed = Vec::new();
    for (path, at) in named {
        if !build.one_line(path, &at, "a path") {
            continue;
        }
        let mut queue = vec![(path.to_owned(), None)];
        while let Some((path, named_in)) = queue.pop() {
            let Some(inside) = inside_context(&path) else {
                build.take(&path, &at);
                continue;
            };
            if copied.contains(&inside) {
                continue;
            }
            if !take(build, &inside, named_in.as_deref(), &at) {
                continue;
            }
            let to = format!("{DIRECTORY}/{inside}");
            let sources = vec![inside.clone()];
            build.push(Kind::Copy { from: None, chown: None, chmod: None, sources, to }, &at);
            queue.extend(includes(build, &inside).into_iter().rev().map(|next| (next, Some(inside.clone()))));
            copied.push(inside);
        }
        installed.extend(inside_context(path).filter(|path| copied.contains(path)));
    }
    installed.dedup();
    installed.into_iter().map(|path| format!("{DIRECTORY}/{path}")).collect()
}

fn take(build: &mut Build<'_>, path: &str, named_in: Option<&str>, at: &Pointer) -> bool {
    let Some(file) = named_in else { return build.take(path, at) };
    if build.context.files.exists(path.into()) {
        build.copied.push(path.to_owned());
        return true;
    }
    build.sink.push(
        Diagnostic::error(codes::BUILD_FILE_MISSING, format!("no such file: `{path}`, named in `{file}`"))
            .at(at, "installed from here"),
    );
    false
}

/// The files that a requirements file names with `-r` and `-c`, relative to the context.
fn includes(build: &Build<'_>, file: &str) -> Vec<String> {
    let Ok(bytes) = build.context.files.read(file.into()) else { return vec![] };
    let text = String::from_utf8_lossy(&bytes);
    let directory = Utf8Path::new(file).parent().map_or_else(Utf8PathBuf::new, Utf8Path::to_path_buf);
    text.lines()
        .filter_map(|line| {
            let line = line.trim();
            let value = ["-r", "--requirement", "-c", "--constraint"].iter().find_map(|option| {
                let rest = line.strip_prefix(option)?;
                rest.starts_with([' ', '=', '\t']).then(|| rest.trim_start_matches([' ', '=', '\t']))
            })?;
            let value = value.split(" #").next()?.trim();
            (!value.is_empty() && !value.contains("://")).then(|| directory.join(value).into_string())
        })
        .collect()
}
