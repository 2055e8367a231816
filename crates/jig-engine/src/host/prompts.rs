//! Prompts: inline, or files of the pinned base commit, which no agent can
//! rewrite.

use std::collections::BTreeMap;

use jig_git::ObjectError;
use jig_git::base_file::BaseFile;
use jig_git::repository::{Base, Repository};
use jig_protocol::definition::{Definition, PromptSource};
use jig_protocol::event::PromptDigest;
use jig_protocol::limits;
use jig_protocol::repo_path::RepoPath;

/// A role's prompts, as text.
#[derive(Debug, Clone, PartialEq)]
pub struct RolePrompts {
    /// The system prompt.
    pub system: String,
    /// The template of the user prompt.
    pub user: String,
    /// The files they came from, with their BLAKE3 digests.
    pub files: Vec<PromptDigest>,
}

/// Why a prompt cannot be used. Known before anything is started.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The base has no regular file there.
    #[error("role {role:?}: prompt {path} {why}")]
    NotAFile {
        /// The role.
        role: String,
        /// The path of the definition.
        path: RepoPath,
        /// What is there instead.
        why: &'static str,
    },
    /// The file is larger than a prompt may be.
    #[error(
        "role {role:?}: prompt {path} has {size} bytes, more than {} allowed (PROMPT_FILE_BYTES)",
        limits::PROMPT_FILE_BYTES
    )]
    TooLarge {
        /// The role.
        role: String,
        /// The path of the definition.
        path: RepoPath,
        /// Its size in bytes.
        size: u64,
    },
    /// The file is no UTF-8 text.
    #[error("role {role:?}: prompt {path} is not UTF-8 text")]
    NotText {
        /// The role.
        role: String,
        /// The path of the definition.
        path: RepoPath,
    },
    /// The base could not be read.
    #[error("role {role:?}: prompt {path} could not be read")]
    Object {
        /// The role.
        role: String,
        /// The path of the definition.
        path: RepoPath,
        /// What git's objects say.
        #[source]
        source: Box<ObjectError>,
    },
}

/// Reads every role's prompts from `base`, an attempt's pinned commit. May be
/// called before anything of the attempt exists, and blocks for a few small
/// reads.
///
/// # Errors
/// Names the role and the path of the first prompt that cannot be used.
pub fn check_prompts(
    definition: &Definition,
    repository: &Repository,
    base: Base,
) -> Result<BTreeMap<String, RolePrompts>, PromptError> {
    definition
        .roster
        .iter()
        .map(|(name, role)| {
            let mut reader = Reader {
                role: name.as_str(),
                repository,
                base,
                files: Vec::new(),
            };
            let system = reader.read(&role.system_prompt)?;
            let user = reader.read(&role.user_prompt)?;
            let prompts = RolePrompts {
                system,
                user,
                files: reader.files,
            };
            Ok((name.as_str().to_owned(), prompts))
        })
        .collect()
}

struct Reader<'a> {
    role: &'a str,
    repository: &'a Repository,
    base: Base,
    files: Vec<PromptDigest>,
}

impl Reader<'_> {
    fn read(&mut self, source: &PromptSource) -> Result<String, PromptError> {
        let path = match source {
            PromptSource::Inline(text) => return Ok(text.clone()),
            PromptSource::Path(path) => path,
        };
        let bytes = self.bytes(path)?;
        let digest = blake3::hash(&bytes).to_hex().to_string();
        let text = String::from_utf8(bytes).map_err(|_| PromptError::NotText {
            role: self.role.to_owned(),
            path: path.clone(),
        })?;
        self.files.push(PromptDigest {
            role: self.role.to_owned(),
            path: path.to_string(),
            digest,
        });
        Ok(text)
    }

    fn bytes(&self, path: &RepoPath) -> Result<Vec<u8>, PromptError> {
        let role = || self.role.to_owned();
        let found = self
            .repository
            .read_base_file(self.base, path, limits::PROMPT_FILE_BYTES)
            .map_err(|source| PromptError::Object {
                role: role(),
                path: path.clone(),
                source: Box::new(source),
            })?;
        let why = match found {
            BaseFile::File(bytes) => return Ok(bytes),
            BaseFile::TooLarge { size } => {
                return Err(PromptError::TooLarge {
                    role: role(),
                    path: path.clone(),
                    size,
                });
            }
            BaseFile::Missing if self.base.commit().is_none() => {
                "cannot be read: the repository has no commit"
            }
            BaseFile::Missing => "is not in the base commit",
            BaseFile::Link => "is a link in the base commit, not a file",
            BaseFile::Directory => "is a directory in the base commit, not a file",
            BaseFile::Submodule => "is a submodule in the base commit, not a file",
        };
        Err(PromptError::NotAFile {
            role: role(),
            path: path.clone(),
            why,
        })
    }
}
