//! Lints: what they find in a job file, and what they leave alone.

mod document;
mod pages;
mod rendezvous;
mod whole;
mod words;

/// The fenced blocks of a page under a heading.
fn blocks<'p>(page: &'p str, heading: &str) -> Vec<&'p str> {
    let Some(section) = page.split("\n## ").find_map(|section| section.strip_prefix(heading)) else {
        return vec![];
    };
    let fenced = section.split("```yaml\n").skip(1);
    fenced.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

/// A whole job file made of a page's example.
fn whole(example: &str) -> String {
    format!("version: 1\nname: example\n{example}")
}
