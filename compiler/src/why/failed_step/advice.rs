//! What to write in the job file, by what a package manager has printed.

/// What the output of a failed command says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Advice<'a> {
    /// The package that the command could not install.
    pub(super) package: Option<&'a str>,
    /// What to do.
    pub(super) notes: Vec<String>,
}

/// Reads the output of the command that an image block causes: one of its `steps`, or a field; of `python`, or another.
pub(super) fn advice(output: &str, in_steps: bool, is_python: bool) -> Advice<'_> {
    let of = |package, note: String| Advice { package, notes: vec![note] };
    let network = || "the package index could not be reached: see the output above".to_owned();
    if output.contains("externally-managed-environment") || output.contains("See PEP 668") {
        return Advice { package: None, notes: externally_managed(in_steps, is_python) };
    }
    if let Some(package) = missing_in_apt(output) {
        // apt-get update only warns when it cannot fetch the lists of packages.
        if output.contains("Failed to fetch") || output.contains("Temporary failure resolving") {
            return of(None, network());
        }
        let note = format!(
            "the distribution of the base image has no package `{package}`: correct the name, build on another release, or add its repository in an earlier step: `steps: [{{run: …}}, {{apt: [{package}]}}]`"
        );
        return of(Some(package), note);
    }
    if let Some(package) = wrong_version_in_apt(output) {
        let note = format!(
            "the distribution of the base image has another version of `{package}`: leave the version out, or build on another release"
        );
        return of(Some(package), note);
    }
    if let Some(package) = missing_in_pip(output) {
        if ["NewConnectionError", "NameResolutionError", "Temporary failure in name resolution"]
            .iter()
            .any(|sign| output.contains(sign))
        {
            return of(None, network());
        }
        let note = format!(
            "no release of `{package}` fits the image's Python and platform: check the name and the version, `python.version`, and `python.index`"
        );
        return of(Some(package), note);
    }
    if let Some(package) = missing_in_conda(output) {
        let note = format!(
            "no channel in `conda.channels` has `{package}`: correct the name, or add the channel that has it"
        );
        return of(Some(package), note);
    }
    Advice::default()
}

/// Pip refuses to change the Python of a distribution (PEP 668).
fn externally_managed(in_steps: bool, is_python: bool) -> Vec<String> {
    let variable = "env: {PIP_BREAK_SYSTEM_PACKAGES: \"1\"}";
    let allow = if in_steps {
        format!("add the step `{variable}` before this one")
    } else {
        format!("write `{variable}` in the image block")
    };
    let other = if is_python {
        "or build on an image with a Python of its own, such as `python:3.12-slim`"
    } else {
        "or list the packages in `python`: on Debian and Ubuntu, jobc then creates a virtual environment"
    };
    vec![format!(
        "the Python of this image belongs to its distribution (PEP 668): {allow} to install next to its packages, {other}"
    )]
}

fn missing_in_apt(output: &str) -> Option<&str> {
    output.lines().find_map(|line| {
        if let Some((_, package)) = line.split_once("E: Unable to locate package ") {
            return Some(package.trim());
        }
        let (_, rest) = line.split_once("E: Package '")?;
        rest.strip_suffix("' has no installation candidate")
    })
}

fn wrong_version_in_apt(output: &str) -> Option<&str> {
    output.lines().find_map(|line| {
        let (_, rest) = line.split_once("E: Version '")?;
        rest.split_once("' for '")?.1.strip_suffix("' was not found")
    })
}

fn missing_in_pip(output: &str) -> Option<&str> {
    let (_, rest) = output.split_once("No matching distribution found for ")?;
    rest.split(|c: char| c.is_whitespace() || "=<>!~[;(".contains(c)).next().filter(|name| !name.is_empty())
}

/// Conda names the packages in a list, mamba each in a sentence.
fn missing_in_conda(output: &str) -> Option<&str> {
    if let Some((_, rest)) = output.split_once("PackagesNotFoundError") {
        let listed = rest.lines().find_map(|line| line.trim_start().strip_prefix("- "));
        return listed.and_then(conda_name);
    }
    output.lines().find_map(|line| {
        if let Some((_, rest)) = line.split_once("nothing provides requested ") {
            return conda_name(rest);
        }
        let (before, _) = line.split_once(" does not exist (perhaps a typo or a missing channel)")?;
        conda_name(before.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()))
    })
}

/// The name in a specification such as `numpy=1.26` or `numpy =* *`, perhaps below a channel.
fn conda_name(specification: &str) -> Option<&str> {
    let name = specification.rsplit("::").next()?;
    name.split(|c: char| c.is_whitespace() || "=<>!~[".contains(c)).next().filter(|name| !name.is_empty())
}
