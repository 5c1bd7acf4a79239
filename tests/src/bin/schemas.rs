//! Writes the generated JSON Schemas beside the crate `jobc-schema`.
#![forbid(unsafe_code)]

fn main() -> std::io::Result<()> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas/");
    for (name, text) in jobc_schema::generate::schemas(&jobc_compiler::emit::to_yaml) {
        std::fs::write(format!("{directory}{name}"), text)?;
    }
    Ok(())
}
