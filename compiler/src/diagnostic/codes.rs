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


    // ---- J02xx: resolve -----------------------------------------------------------------------
    PARAM_UNKNOWN "J0201" "a parameter that the job does not have is given";
    PARAM_MISSING "J0202" "a parameter has no value";
    PARAM_TYPE "J0203" "a parameter's value is not of its type";
    PARAM_RANGE "J0204" "a parameter's value is not allowed";
    PARAM_RULES "J0205" "a parameter's rules do not fit together";
    MATRIX_EMPTY "J0206" "a matrix has no combinations";
    MATRIX_SIZE "J0207" "a matrix has too many combinations";
    MATRIX_COMBINATION "J0208" "`include` or `exclude` does not fit the axes of a matrix";
    MATRIX_OUTPUT "J0209" "two jobs of a matrix write to one place";
    EXPRESSION_SYNTAX "J0210" "an expression cannot be read";
    EXPRESSION_NAME "J0211" "a name in an expression is not defined";
    EXPRESSION_PLACE "J0212" "an expression stands where its value cannot be known";
    EXPRESSION_VALUE "J0213" "an expression has no value that fits";
    SECRET_PLACE "J0214" "a secret stands where its value would be seen";
    ENV_RESERVED "J0215" "a variable is set that jobc or the place sets";
    COMMAND "J0216" "the parts of a command do not go together";
    READY "J0217" "`ready` does not say one way to know it";
    FILE "J0218" "a file of a role is not one text at one place";
    MISSING_FILE "J0219" "a file that the job names cannot be used";
    IMAGE_NONE "J0220" "a role has no image";
    IMAGE_UNKNOWN "J0221" "a named image is not there";
    IMAGE_FORM "J0222" "an image is not one of the forms";
    IMAGE_REFERENCE "J0223" "an image reference cannot be one";
    NO_ROLES "J0224" "the job has no roles";
    VOLUME_SOURCE "J0230" "the source of data or of an output cannot be read";
    VOLUME_MOUNT "J0231" "something is mounted where it cannot be";
    VOLUME_NAME "J0232" "data and an output have one name";
    VOLUME_UNKNOWN "J0233" "a role lists data or an output that is not there";
    VOLUME_OPTION "J0234" "an option does not fit the source";
    SECRET_UNKNOWN "J0235" "a secret is not declared";
    HUGEPAGES "J0240" "huge pages are not whole";
    PORT_CLASH "J0241" "two ports of a role have one number";
    PORT_RANGE "J0242" "a row of ports ends above 65535";
    GPU_RULES "J0243" "rules about GPUs do not fit together";
    PORT_UNKNOWN "J0244" "a port label is not there";
    NEED_UNKNOWN "J0250" "a needed role is not there";
    NEED_CYCLE "J0251" "roles wait for each other";
    NEED_READY "J0252" "a role that others wait for does not say when it is ready";
    NEED_MIN "J0253" "a role waits for more instances than there are";
    DEADLOCK "J0254" "instances that must run together cannot";
    COMPLETION "J0255" "a threshold can never be reached";
    GANG_MIN "J0256" "a gang is larger than the job";
    MEMBER_UNKNOWN "J0270" "a role of `distributed` is not there";
    MEMBER_PART "J0271" "a part does not fit the framework";
    LAUNCH "J0272" "a command of `distributed` would never run, or is missing";
    PROCESSES "J0273" "the framework starts one process on each instance";
    RENDEZVOUS_PORT "J0274" "the rendezvous port is given twice";


    // ---- J03xx: check (lints) -----------------------------------------------------------------


    // ---- J04xx: lower, what a backend cannot express --------------------------------------------


    // ---- J05xx: files, targets and other input formats -----------------------------------------


    // ---- J06xx: a user's own Dockerfile --------------------------------------------------------

}
