//! The rules of `docker build --check`, by their names in `# check=skip=…`.
//!
//! Source: docs.docker.com/reference/build-checks.

/// A rule about text that every builder accepts but that is probably a mistake, or hard to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lint {
    /// A variable without a value, in an instruction of a stage.
    UndefinedVar,
    /// A variable without a value, in `FROM`.
    UndefinedArgInFrom,
    /// A `FROM` that names no image unless a build argument is given.
    InvalidDefaultArgInFrom,
    /// A value of `ARG` or `ENV` that looks like a secret.
    SecretsUsedInArgOrEnv,
    /// A stage name with upper-case letters.
    StageNameCasing,
    /// A duplicate stage name.
    DuplicateStageName,
    /// A reserved stage name.
    ReservedStageName,
    /// `as` after `FROM`, or `AS` after `from`.
    FromAsCasing,
    /// Keywords in both upper and lower case.
    ConsistentInstructionCasing,
    /// `CMD` or `ENTRYPOINT` in shell form.
    JsonArgsRecommended,
    /// `ENV NAME value` without an equals sign.
    LegacyKeyValueFormat,
    /// `MAINTAINER`.
    MaintainerDeprecated,
    /// Several `CMD`, `ENTRYPOINT` or `HEALTHCHECK` in a stage.
    MultipleInstructionsDisallowed,
    /// A relative `WORKDIR` on a directory that only the base image knows.
    WorkdirRelativePath,
    /// `COPY` of a file that `.dockerignore` excludes.
    CopyIgnoredFile,
    /// `FROM --platform=$TARGETPLATFORM`, which is the default.
    RedundantTargetPlatform,
    /// `FROM --platform=` with a fixed platform.
    FromPlatformFlagConstDisallowed,
    /// A protocol of `EXPOSE` in upper case.
    ExposeProtoCasing,
    /// An address or a host port in `EXPOSE`.
    ExposeInvalidFormat,
    /// An empty line inside an instruction.
    NoEmptyContinuation,
    /// A comment above an `ARG` or a stage that does not describe it; only if the file enables the rule.
    InvalidDefinitionDescription,
}

impl Lint {
    /// All rules.
    pub const ALL: [Self; 21] = [
        Self::UndefinedVar,
        Self::UndefinedArgInFrom,
        Self::InvalidDefaultArgInFrom,
        Self::SecretsUsedInArgOrEnv,
        Self::StageNameCasing,
        Self::DuplicateStageName,
        Self::ReservedStageName,
        Self::FromAsCasing,
        Self::ConsistentInstructionCasing,
        Self::JsonArgsRecommended,
        Self::LegacyKeyValueFormat,
        Self::MaintainerDeprecated,
        Self::MultipleInstructionsDisallowed,
        Self::WorkdirRelativePath,
        Self::CopyIgnoredFile,
        Self::RedundantTargetPlatform,
        Self::FromPlatformFlagConstDisallowed,
        Self::ExposeProtoCasing,
        Self::ExposeInvalidFormat,
        Self::NoEmptyContinuation,
        Self::InvalidDefinitionDescription,
    ];

    /// The name in `# check=skip=NAME`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UndefinedVar => "UndefinedVar",
            Self::UndefinedArgInFrom => "UndefinedArgInFrom",
            Self::InvalidDefaultArgInFrom => "InvalidDefaultArgInFrom",
            Self::SecretsUsedInArgOrEnv => "SecretsUsedInArgOrEnv",
            Self::StageNameCasing => "StageNameCasing",
            Self::DuplicateStageName => "DuplicateStageName",
            Self::ReservedStageName => "ReservedStageName",
            Self::FromAsCasing => "FromAsCasing",
            Self::ConsistentInstructionCasing => "ConsistentInstructionCasing",
            Self::JsonArgsRecommended => "JSONArgsRecommended",
            Self::LegacyKeyValueFormat => "LegacyKeyValueFormat",
            Self::MaintainerDeprecated => "MaintainerDeprecated",
            Self::MultipleInstructionsDisallowed => "MultipleInstructionsDisallowed",
            Self::WorkdirRelativePath => "WorkdirRelativePath",
            Self::CopyIgnoredFile => "CopyIgnoredFile",
            Self::RedundantTargetPlatform => "RedundantTargetPlatform",
            Self::FromPlatformFlagConstDisallowed => "FromPlatformFlagConstDisallowed",
            Self::ExposeProtoCasing => "ExposeProtoCasing",
            Self::ExposeInvalidFormat => "ExposeInvalidFormat",
            Self::NoEmptyContinuation => "NoEmptyContinuation",
            Self::InvalidDefinitionDescription => "InvalidDefinitionDescription",
        }
    }

    /// Whether it is about style, and not about meaning.
    pub const fn is_style(self) -> bool {
        matches!(
            self,
            Self::StageNameCasing
                | Self::FromAsCasing
                | Self::ConsistentInstructionCasing
                | Self::JsonArgsRecommended
                | Self::LegacyKeyValueFormat
                | Self::RedundantTargetPlatform
                | Self::FromPlatformFlagConstDisallowed
                | Self::ExposeProtoCasing
                | Self::InvalidDefinitionDescription
        )
    }

    /// Whether it is applied only if `# check=experimental=…` names it.
    pub const fn is_experimental(self) -> bool {
        matches!(self, Self::InvalidDefinitionDescription)
    }
}
