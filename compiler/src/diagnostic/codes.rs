//! The table of codes: one line a code, one page a code under `codes/`.

use std::fmt;

/// A stable diagnostic code, such as `J0201`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(&'static str);

impl Code {
    /// The code as text.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The page `jobc explain` prints, in Markdown.
    pub fn page(self) -> &'static str {
        TABLE.iter().find(|(code, ..)| *code == self).map_or("", |(_, _, page)| page)
    }

    /// One line that says what the code stands for.
    pub fn title(self) -> &'static str {
        TABLE.iter().find(|(code, ..)| *code == self).map_or("", |(_, title, _)| title)
    }

    /// The code with that text, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        TABLE.iter().map(|(code, ..)| *code).find(|code| code.0.eq_ignore_ascii_case(text))
    }

    /// All codes with their titles.
    pub fn all() -> impl Iterator<Item = (Self, &'static str)> {
        TABLE.iter().map(|(code, title, _)| (*code, *title))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

macro_rules! codes {
    ($($name:ident $code:literal $title:literal;)*) => {
        $(#[doc = $title] pub const $name: Code = Code($code);)*
        /// Code, title, page.
        static TABLE: &[(Code, &str, &str)] =
            &[$((Code($code), $title, include_str!(concat!("codes/", $code, ".md"))),)*];
    };
}

codes! {
    // ---- J00xx: parse -------------------------------------------------------------------------
    SYNTAX "J0001" "the text is not YAML or JSON";
    DUPLICATE_KEY "J0002" "a key stands twice in one map";
    TAB "J0003" "a tab stands where only spaces may";
    LEADING_ZERO "J0004" "a number begins with a zero";
    MERGE "J0005" "`<<` is not part of version 1";
    TAG "J0006" "a tag means nothing here";
    SEVERAL_DOCUMENTS "J0007" "the file holds more than one document";
    KEY "J0008" "a key is not a string";
    ALIAS "J0009" "an alias has no anchor";
    LIMIT "J0010" "the file is too large, nests too deep or copies too much";
    EMPTY "J0011" "the file holds no value";
    EXPRESSION_IN_FLOW "J0012" "an expression inside `{}` or `[]` is not quoted";
    MISREAD "J0013" "other tools read a plain value differently";
    NUMBER "J0014" "a number cannot be kept";
    UNCLOSED "J0015" "a quote or bracket is not closed";
    MISSING_BLANK "J0016" "a blank is missing after a colon or dash";
    SECOND_COLON "J0017" "a plain value holds `: `";
    NOT_JSON "J0018" "text from a shell or an abridged text is not JSON";
    JSON_SPELLING "J0019" "JSON spells this differently";


    // ---- J01xx: validate ----------------------------------------------------------------------
    UNKNOWN_KEY "J0101" "a key is not known where it stands";
    MISSING_KEY "J0102" "a key is missing";
    WRONG_KIND "J0103" "a value is of a kind its key does not take";
    NO_VALUE "J0104" "a key has no value";
    BAD_AMOUNT "J0105" "an amount or a duration cannot be read";
    NOT_ONE_OF "J0106" "a value is not one of the words its key takes";
    MALFORMED "J0107" "a text does not have the form its key takes";
    BAD_NAME "J0108" "a name has letters its place does not allow";
    OUT_OF_RANGE "J0109" "a number is too small or too great";
    EMPTY_VALUE "J0110" "something is empty that must not be";
    BOOL_IN_ENV "J0111" "an environment variable is a bool";
    EXCLUSIVE "J0112" "keys exclude each other";
    ONE_NEEDED "J0113" "one of several keys is needed";
    IMAGE_KEYS "J0114" "keys of an image block do not go together";
    NO_ROLES "J0115" "a job has no roles";
    NO_SCRIPT "J0116" "`shell` or `setup` has no script to work on";
    MATRIX_MIXED "J0117" "axes stand beside the rules of a matrix";
    DUPLICATE_ITEM "J0118" "a list names something twice";
    SHARED_NAME "J0119" "data and outputs share a name";
    UNKNOWN_TARGET "J0120" "`default` names a target that is not there";
    UNUSED_SETTINGS "J0121" "a target has settings for a backend it does not write";
    MISMATCH "J0149" "a checked file does not fit the types";


    // ---- J02xx: resolve -----------------------------------------------------------------------


    // ---- J03xx: check (lints) -----------------------------------------------------------------


    // ---- J04xx: lower, what a backend cannot express --------------------------------------------


    // ---- J05xx: files, targets and other input formats -----------------------------------------


    // ---- J06xx: a user's own Dockerfile --------------------------------------------------------

}
