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


    // ---- J01xx: validate ----------------------------------------------------------------------


    // ---- J02xx: resolve -----------------------------------------------------------------------


    // ---- J03xx: check (lints) -----------------------------------------------------------------


    // ---- J04xx: lower, what a backend cannot express --------------------------------------------
    KUBERNETES_NAME "J0410" "a name derived for Kubernetes is too long or begins with a digit";
    KUBERNETES_KIND "J0411" "the target's kind of object cannot hold the job";
    KUBERNETES_RELEASE "J0412" "the target's release is too old for what the job needs";
    KUBERNETES_RANK "J0413" "a rank that no shell can work out";
    KUBERNETES_SETTING "J0414" "a Kubernetes setting of the target is wrong";
    KUBERNETES_SIZE "J0415" "something is larger than Kubernetes takes";
    KUBERNETES_REGISTRY "J0416" "the cluster cannot pull an image that is built here";
    KUBERNETES_LEFT_OUT "J0417" "a variable or file of jobc's is left out because it does not fit";
    KUBERNETES_LABEL "J0418" "a label that Kubernetes does not take";
    KUBERNETES_VOLUME_SECRET "J0419" "a volume's secret that Kubernetes does not use";


    // ---- J05xx: files, targets and other input formats -----------------------------------------


    // ---- J06xx: a user's own Dockerfile --------------------------------------------------------

}
