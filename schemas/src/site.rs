//! The documentation site, whose address a release sets when it is built.
//!
//! A build without the variable `JOBC_SITE` has no address, and nothing in it links to one.

/// The address of the documentation site, without a slash at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site(&'static str);

impl Site {
    /// The site of this build: the variable `JOBC_SITE`, such as `https://example.com/jobc`.
    pub fn of_build() -> Option<Self> {
        option_env!("JOBC_SITE").filter(|address| !address.is_empty()).map(Self::new)
    }

    /// A site at an address.
    pub fn new(address: &'static str) -> Self {
        Self(address.trim_end_matches('/'))
    }

    /// The address of a schema, by its file name.
    pub fn schema(self, file: &str) -> String {
        format!("{}/schemas/{file}", self.0)
    }

    /// The address of the page of a diagnostic code.
    pub fn code(self, code: &str) -> String {
        format!("{}/codes/{code}.html", self.0)
    }

    /// The text of a schema with its address as `$id`, in place of its file name.
    pub fn with_address(self, schema: &str, file: &str) -> String {
        schema.replace(&id(file), &id(&self.schema(file)))
    }
}

/// The line of a schema that names it.
fn id(address: &str) -> String {
    format!("\n  \"$id\": \"{address}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JOB_SCHEMA;

    #[test]
    fn addresses_are_below_the_site() {
        let site = Site::new("https://example.com/jobc/");
        assert_eq!(site.schema("job.v1.schema.json"), "https://example.com/jobc/schemas/job.v1.schema.json");
        assert_eq!(site.code("J0311"), "https://example.com/jobc/codes/J0311.html");
    }

    #[test]
    fn a_schema_gets_its_address_once() {
        let file = "job.v1.schema.json";
        let text = Site::new("https://example.com").with_address(JOB_SCHEMA, file);
        let (old, new) =
            (r#""$id": "job.v1.schema.json""#, r#""$id": "https://example.com/schemas/job.v1.schema.json""#);
        assert_eq!(
            (JOB_SCHEMA.matches(old).count(), text.matches(old).count(), text.matches(new).count()),
            (1, 0, 1)
        );
        assert_eq!(text.len() - JOB_SCHEMA.len(), new.len() - old.len());
    }
}
