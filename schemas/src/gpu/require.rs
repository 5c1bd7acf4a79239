//! The language of `NVIDIA_REQUIRE_*`: what an image requires of the host's driver and cards.
//!
//! A space means "or", a comma "and"; a condition is a name, a comparison and a value, `cuda>=12.4`. Versions are
//! compared number by number, `brand` as a word. Source: libnvidia-container, `src/cli/dsl.c` and `configure.c`; the
//! NVIDIA container toolkit's documentation of the variables.

use std::cmp::Ordering;
use std::fmt;

use crate::version::Version;

/// The value of one `NVIDIA_REQUIRE_*` variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Require {
    /// Any of these must hold; each holds when all of its conditions do.
    pub alternatives: Vec<Vec<Condition>>,
}

/// One condition: `driver>=470`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What is compared: `cuda`, `driver`, `arch`, `brand`.
    pub name: Name,
    /// How.
    pub comparison: Comparison,
    /// With what.
    pub value: String,
}

/// What a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// Newest CUDA version that the driver supports.
    Cuda,
    /// The driver's version.
    Driver,
    /// The card's compute capability.
    Arch,
    /// The card's brand, `tesla`, `geforcertx`.
    Brand,
}

/// How a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`, also `==`.
    Equal,
    /// `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterEqual,
}

/// Known facts about a host's driver and one of its cards; `None` means unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Newest CUDA version that the driver supports.
    pub cuda: Option<Version>,
    /// The driver's version.
    pub driver: Option<Version>,
    /// The card's compute capability.
    pub arch: Option<Version>,
    /// The card's brand in NVIDIA's spelling, in lower case.
    pub brand: Option<String>,
}

/// The result of checking a requirement against facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Met,
    /// It does not.
    Unmet,
    /// Too little is known.
    Unknown,
}

impl Require {
    /// Whether a variable of that name is a requirement.
    pub fn is_variable(name: &str) -> bool {
        name.starts_with("NVIDIA_REQUIRE_")
    }

    /// Whether the value of `NVIDIA_DISABLE_REQUIRE` disables all requirements, parsed like Go's `ParseBool`.
    pub fn is_disabled(value: &str) -> bool {
        matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")
    }

    /// Parses the value of a variable; an empty value requires nothing.
    ///
    /// # Errors
    /// A message about the condition that cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let alternative = |text: &str| text.split(',').map(Condition::parse).collect::<Result<Vec<_>, _>>();
        let alternatives = text.split_whitespace().map(alternative).collect::<Result<_, _>>()?;
        Ok(Self { alternatives })
    }

    /// Checks the requirement against facts: one alternative that holds is enough.
    pub fn evaluate(&self, facts: &Facts) -> Verdict {
        let all = |conditions: &Vec<Condition>| {
            let verdicts = conditions.iter().map(|condition| condition.evaluate(facts));
            verdicts.fold(Verdict::Met, |sum, next| match (sum, next) {
                (Verdict::Unmet, _) | (_, Verdict::Unmet) => Verdict::Unmet,
                (Verdict::Unknown, _) | (_, Verdict::Unknown) => Verdict::Unknown,
                _ => Verdict::Met,
            })
        };
        if self.alternatives.is_empty() {
            return Verdict::Met;
        }
        self.alternatives.iter().map(all).fold(Verdict::Unmet, |sum, next| match (sum, next) {
            (Verdict::Met, _) | (_, Verdict::Met) => Verdict::Met,
            (Verdict::Unknown, _) | (_, Verdict::Unknown) => Verdict::Unknown,
            _ => Verdict::Unmet,
        })
    }
}

impl Condition {
    fn parse(text: &str) -> Result<Self, String> {
        const OPERATORS: [(&str, Comparison); 7] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessEqual),
            (">=", Comparison::GreaterEqual),
            ("=", Comparison::Equal),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let wrong = || format!("invalid condition `{text}`: write for example `cuda>=12.4`");
        let at = text.find(['=', '!', '<', '>']).ok_or_else(wrong)?;
        let (name, rest) = text.split_at(at);
        let (sign, comparison) =
            OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign)).ok_or_else(wrong)?;
        let value = &rest[sign.len()..];
        let name = match name {
            "cuda" => Name::Cuda,
            "driver" => Name::Driver,
            "arch" => Name::Arch,
            "brand" => Name::Brand,
            _ => return Err(format!("`{name}` of `{text}` is not one of `cuda`, `driver`, `arch`, `brand`")),
        };
        if value.is_empty() || (name != Name::Brand && Version::parse(value).is_none()) {
            return Err(wrong());
        }
        Ok(Self { name, comparison: *comparison, value: value.to_owned() })
    }

    /// Checks the condition against facts.
    pub fn evaluate(&self, facts: &Facts) -> Verdict {
        let version = match self.name {
            Name::Cuda => &facts.cuda,
            Name::Driver => &facts.driver,
            Name::Arch => &facts.arch,
            Name::Brand => {
                return facts.brand.as_ref().map_or(Verdict::Unknown, |brand| {
                    self.holds(brand.to_ascii_lowercase().cmp(&self.value.to_ascii_lowercase()))
                });
            }
        };
        match (version, Version::parse(&self.value)) {
            (Some(has), Some(wanted)) => self.holds(has.cmp(&wanted)),
            _ => Verdict::Unknown,
        }
    }

    fn holds(&self, order: Ordering) -> Verdict {
        let holds = match self.comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterEqual => order.is_ge(),
        };
        if holds { Verdict::Met } else { Verdict::Unmet }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.name {
            Name::Cuda => "cuda",
            Name::Driver => "driver",
            Name::Arch => "arch",
            Name::Brand => "brand",
        };
        let sign = match self.comparison {
            Comparison::Equal => "=",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterEqual => ">=",
        };
        write!(f, "{name}{sign}{}", self.value)
    }
}

impl fmt::Display for Require {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |all: &Vec<Condition>| all.iter().map(Condition::to_string).collect::<Vec<_>>().join(",");
        f.write_str(&self.alternatives.iter().map(join).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Driver, CUDA and brand, `-` where it is not known.
    fn facts(driver: &str, cuda: &str, brand: &str) -> Facts {
        let known = |text: &str| Some(text.to_owned()).filter(|text| text != "-");
        Facts {
            cuda: known(cuda).and_then(|text| Version::parse(&text)),
            driver: known(driver).and_then(|text| Version::parse(&text)),
            arch: None,
            brand: known(brand),
        }
    }

    #[test]
    fn requirements_of_an_image_are_checked() {
        let cuda = "cuda>=12.1 brand=tesla,driver>=470,driver<471 brand=unknown,driver>=470,driver<471";
        let check = |text: &str, facts: &Facts, expected: Verdict| {
            let read = Require::parse(text).unwrap();
            assert_eq!(read.evaluate(facts), expected, "{text} {facts:?}");
            assert_eq!(Require::parse(&read.to_string()).unwrap(), read, "{text}");
        };
        check(cuda, &facts("550.54.15", "12.4", "geforce"), Verdict::Met);
        check(cuda, &facts("470.82.01", "11.4", "Tesla"), Verdict::Met);
        check(cuda, &facts("470.82.01", "11.4", "geforce"), Verdict::Unmet);
        check(cuda, &facts("470.82.01", "11.4", "-"), Verdict::Unknown);
        check(cuda, &facts("525.60.13", "12.0", "-"), Verdict::Unmet);
        check(cuda, &facts("-", "12.1", "-"), Verdict::Met);
        check("", &Facts::default(), Verdict::Met);
        check("driver!=550.54.15", &facts("550.54.15", "-", "-"), Verdict::Unmet);
        check("driver>470.00 cuda<=11", &facts("470.0.1", "-", "-"), Verdict::Met);
        check("arch==8.0", &Facts::default(), Verdict::Unknown);
    }

    #[test]
    fn invalid_conditions_are_rejected_by_name() {
        for (text, word) in [
            ("cuda", "`cuda`"),
            ("cuda>", "`cuda>`"),
            ("gpu>=3", "`gpu`"),
            ("cuda>=12.x", "12.x"),
            ("cuda!12", "cuda!12"),
        ] {
            let error = Require::parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn disable_require_is_parsed_like_go() {
        assert!(Require::is_disabled("true") && Require::is_disabled("1"));
        assert!(!Require::is_disabled("yes") && !Require::is_disabled(""));
        assert!(
            Require::is_variable("NVIDIA_REQUIRE_CUDA") && !Require::is_variable("NVIDIA_DISABLE_REQUIRE")
        );
    }
}
