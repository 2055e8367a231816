//! The stable codes of everything the parser can say about a definition.

use std::fmt;

use serde::{Serialize, Serializer};

/// How much a diagnostic matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The definition is refused.
    Error,
    /// The definition is accepted; `--strict` refuses it.
    Warning,
}

macro_rules! codes {
    ($($name:ident = $code:literal, $meaning:literal;)*) => {
        /// What a diagnostic is about. A code keeps its meaning for ever.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $name,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The code as it is shown: `E` for errors, `W` for warnings, three digits.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code),* }
            }

            /// What the code means, in one sentence of Markdown.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning),* }
            }
        }
    };
}

codes! {
    Syntax = "E001", "The text is not YAML.";
    TooLarge = "E002", "The text is larger than 1 MiB.";
    TooDeep = "E003", "Lists and maps are nested more than 32 deep.";
    TooManyNodes = "E004", "There are more than 10,000 values, or more than 1 MiB of text, once aliases are expanded.";
    Documents = "E005", "The file holds no document, or more than one.";
    Tag = "E006", "A YAML tag (`!…`) is used; the language has none.";
    RepeatedKey = "E007", "A key occurs twice in one map.";
    Key = "E008", "A key is not plain text, or is the merge key `<<`.";
    UnknownKey = "E010", "A key is not part of the language.";
    WrongType = "E011", "A value has the wrong type, or is missing after its key.";
    Missing = "E012", "A required key is missing.";
    Choice = "E013", "A value is not one of the words its key allows.";
    Range = "E014", "A number is outside its range.";
    Name = "E015", "A name breaks the rule for names.";
    RepeatedName = "E016", "A name is used twice; names are compared ignoring case.";
    Blank = "E017", "A text is blank, or a list that needs entries is empty.";
    Duration = "E018", "A duration is malformed.";
    Prompt = "E020", "A role does not have exactly one system prompt and one user prompt.";
    PromptPath = "E021", "A prompt path is absolute, leaves the repository, or is not a portable path.";
    Pattern = "E022", "A `writes` pattern is outside the grammar.";
    Environment = "E023", "An entry of `env` or `sensitive_env` is not a variable's name, or occurs twice.";
    Sensitive = "E024", "`sensitive_env` names a variable that is not in `env`.";
    Unsupported = "E025", "The pinned runtime cannot do what the role asks for.";
    Owner = "E030", "A phase's owner is not in the roster.";
    WrongKind = "E031", "A key does not belong to this kind of phase.";
    Predicate = "E032", "A guard or predicate cannot be read.";
    Literal = "E033", "A predicate compares a field of known type with a literal it can never equal.";
    Gate = "E034", "A gate is not in the registry.";
    GateField = "E035", "A gate lacks the key it needs, or has one it does not take.";
    AllowGlob = "E036", "An `allow` glob is malformed.";
    EdgeTarget = "E040", "A repair edge runs a phase that does not exist, or itself.";
    RerunOrder = "E041", "`rerun-chain` runs a phase that does not come earlier.";
    RerunGroup = "E042", "`rerun-chain` would run members of a group outside the group.";
    EdgeCycle = "E043", "Repair edges form a cycle.";
    Acceptance = "E050", "An acceptance check names no gate that is declared in the chain.";
    GroupShape = "E060", "`parallel` is not a flat list of at least two distinct phases.";
    GroupMember = "E061", "A member of `parallel` is not an agent phase of the chain.";
    GroupOrder = "E062", "The members of `parallel` are not consecutive in chain order.";
    GroupWrites = "E063", "A member of `parallel` has a role that may write.";
    GroupOwner = "E064", "One role owns two members of `parallel`.";
    GroupGuard = "E065", "A member's guard reads a field that a sibling reports.";
    GroupOverlap = "E066", "A phase is in `parallel` and in `parallel_writers`.";
    WriterShape = "E070", "`parallel_writers` does not have two to four distinct members.";
    WriterMember = "E071", "A writer is not an agent phase, not consecutive in chain order, or shares its role with another writer.";
    WriterPath = "E072", "An owned or shared path is not a portable path of a file.";
    WriterOverlap = "E073", "Two owned paths are the same file in different spelling, or one lies inside the other.";
    WriterWrites = "E074", "A writer's role does not state `writes`, or does not cover what the member owns.";
    WriterShared = "E075", "`shared` does not list exactly the paths with two owners.";
    WriterLock = "E076", "A lock is outside the vocabulary, or two members hold the same one.";
    WriterCheck = "E077", "A check of a writer is malformed.";
    WriterChain = "E078", "The rest of the chain does not fit the writers: an edge into the group, a gate, edge or guard a writer cannot have, or nothing that verifies the result.";
    PublishEmpty = "E080", "`publish` declares neither `hold_when` nor `ci`.";
    CiWait = "E081", "`ci.rerun` or `ci.on_fail` without `wait: true`.";
    CiTarget = "E082", "`ci.on_fail.run` is not an agent phase, is the last phase, or is in a group.";
    Grant = "E090", "A `build_outputs` entry is not a directory grant.";
    SandboxPath = "E091", "A path of `sandbox.read` is malformed.";
    Unrestricted = "W001", "A role does not state `writes`, so it may write anywhere in the work tree.";
    Placeholder = "W002", "A prompt holds a placeholder that is not built in, or a system prompt holds any.";
    IdleCi = "W003", "`ci` without `wait: true` does nothing.";
    UnreportedGuard = "W004", "A group member's guard reads a field that no earlier phase is known to report.";
    Thinking = "W005", "`thinking` is accepted for old files and does nothing.";
}

impl Code {
    /// Whether the code is an error or a warning.
    #[must_use]
    pub fn severity(self) -> Severity {
        if self.as_str().starts_with('W') {
            Severity::Warning
        } else {
            Severity::Error
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
