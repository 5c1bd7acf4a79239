//! Text with placeholders that only a target can fill.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Text with placeholders that only a target can fill: a string if there are none, otherwise a list of pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(Vec<Piece>);

/// Literal text or a placeholder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Piece {
    /// Literal text.
    Literal(String),
    /// A placeholder.
    Reference(Reference),
}

/// Value of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reference {
    /// Index of the instance in its role, from 0.
    Index {},
    /// Index of the instance plus an offset: its rank.
    Rank {
        /// The rank of the role's first instance.
        offset: u32,
    },
    /// The address of an instance.
    Host {
        /// The role.
        role: String,
        /// Index of the instance. Default: the instance that reads the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<u32>,
    },
    /// The number of a port.
    Port {
        /// The role.
        role: String,
        /// The port's label.
        label: String,
        /// Index of the instance. Default: the instance that reads the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<u32>,
    },
    /// Numbers of consecutive ports, separated by commas.
    Ports {
        /// The role.
        role: String,
        /// Label of the ports.
        label: String,
        /// Index of the instance. Default: the instance that reads the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<u32>,
        /// Number of ports.
        count: u32,
    },
    /// The addresses of all instances of a role, in order, each between `before` and `after`.
    Hosts {
        /// The role.
        role: String,
        /// Label of a port that is added to each address as `:PORT`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// Text before each address.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        before: String,
        /// Text after each address and port.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        after: String,
        /// Text between two addresses.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        separator: String,
    },
}

impl Text {
    /// Text without placeholders.
    pub fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() { Self::default() } else { Self(vec![Piece::Literal(text)]) }
    }

    /// A single placeholder.
    pub fn reference(reference: Reference) -> Self {
        Self(vec![Piece::Reference(reference)])
    }

    /// The pieces in order; neighbouring literals are always joined.
    pub fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// The whole text, where it has no placeholders.
    pub fn as_literal(&self) -> Option<&str> {
        match &self.0[..] {
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The placeholders.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.0.iter().filter_map(|piece| if let Piece::Reference(r) = piece { Some(r) } else { None })
    }

    /// Adds text at the end.
    pub fn push_str(&mut self, text: &str) {
        if let Some(Piece::Literal(last)) = self.0.last_mut() {
            last.push_str(text);
        } else if !text.is_empty() {
            self.0.push(Piece::Literal(text.to_owned()));
        }
    }

    /// Adds a placeholder at the end.
    pub fn push_reference(&mut self, reference: Reference) {
        self.0.push(Piece::Reference(reference));
    }

    /// Adds another text at the end.
    pub fn push_text(&mut self, other: &Self) {
        for piece in &other.0 {
            match piece {
                Piece::Literal(text) => self.push_str(text),
                Piece::Reference(reference) => self.push_reference(reference.clone()),
            }
        }
    }

    /// The text with every placeholder filled.
    pub fn render(&self, mut fill: impl FnMut(&Reference) -> String) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Reference(reference) => out.push_str(&fill(reference)),
            }
        }
        out
    }

    /// The text with its literals and placeholders each turned into text, for targets that quote the two differently.
    pub fn render_with(
        &self,
        mut literal: impl FnMut(&str) -> String,
        mut fill: impl FnMut(&Reference) -> String,
    ) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Literal(text) => literal(text),
                Piece::Reference(reference) => fill(reference),
            })
            .collect()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::literal(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::literal(text)
    }
}

impl FromIterator<Piece> for Text {
    fn from_iter<I: IntoIterator<Item = Piece>>(pieces: I) -> Self {
        let mut text = Self::default();
        for piece in pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(&literal),
                Piece::Reference(reference) => text.push_reference(reference),
            }
        }
        text
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_literal() {
            Some(text) => serializer.serialize_str(text),
            None => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Plain(String),
            Pieces(Vec<Piece>),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Plain(text) => Self::literal(text),
            Form::Pieces(pieces) => pieces.into_iter().collect(),
        })
    }
}

impl JsonSchema for Text {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let piece = generator.subschema_for::<Piece>();
        schemars::json_schema!({
            "description": "Text with placeholders that only a target can fill: a string if there are none, otherwise a list of pieces.",
            "anyOf": [{"type": "string"}, {"type": "array", "items": piece}]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_holes_is_a_string() {
        let text: Text = [Piece::Literal("a".into()), Piece::Literal("b".into())].into_iter().collect();
        assert_eq!(serde_json::to_string(&text).unwrap(), r#""ab""#);
        assert_eq!(serde_json::from_str::<Text>(r#""ab""#).unwrap(), text);
    }

    #[test]
    fn text_with_holes_is_a_list() {
        let mut text = Text::literal("rank ");
        text.push_reference(Reference::Rank { offset: 1 });
        text.push_reference(Reference::Index {});
        let json = r#"["rank ",{"rank":{"offset":1}},{"index":{}}]"#;
        assert_eq!(serde_json::to_string(&text).unwrap(), json);
        assert_eq!(serde_json::from_str::<Text>(json).unwrap(), text);
        assert_eq!(
            text.render(|r| if matches!(r, Reference::Index {}) { "i".into() } else { "r".into() }),
            "rank ri"
        );
    }
}
