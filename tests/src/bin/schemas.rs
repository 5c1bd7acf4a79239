//! Writes the generated JSON Schemas beside the crate `jobc-schema`.
#![forbid(unsafe_code)]

fn main() -> std::io::Result<()> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas/");
    for (name, text) in jobc_schema::generate::schemas(&jobc_compiler::emit::to_yaml) {
        let path = format!("{directory}{name}");
        // Every crate is compiled again after a newer file.
        if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            std::fs::write(path, text)?;
        }
    }
    Ok(())
}
