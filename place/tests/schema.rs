//! The published schema of what commands about jobs print.

use jobc_place::output::{SCHEMA_FILE, schema};

#[test]
fn the_committed_schema_is_that_of_the_types() {
    let path = format!("{}/../schemas/{SCHEMA_FILE}", env!("CARGO_MANIFEST_DIR"));
    let text = schema();
    if std::env::var_os("JOBC_UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(path, text).unwrap();
    } else {
        assert!(text == jobc_schema::OUTPUT_SCHEMA, "JOBC_UPDATE=1 writes {SCHEMA_FILE} again");
    }
}
