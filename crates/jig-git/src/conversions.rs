//! Between the bytes of a checkout and blobs: git's built-in conversions (line
//! ends, `ident`, `working-tree-encoding`) by the attributes of the base, and
//! never a filter driver.
//!
//! Line ends are converted here. Encodings and `ident` are left to the git
//! program, which alone writes them as git does; it runs in a repository of
//! jig's own whose configuration names nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice};
use gix::filter::plumbing::pipeline::convert::{ToGitOutcome, to_worktree};
use gix::filter::plumbing::{Pipeline, eol, pipeline};
use gix::hash::Kind as HashKind;
use gix::index::entry::Mode;
use jig_protocol::repo_path::RepoPath;

use crate::objects::ObjectError;
use crate::pinned_tree::PinnedTree;
use crate::run::{Git, GitError, Input, Invocation};

/// Why content could not be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The bytes do not fit the attributes of their path.
    #[error("could not convert {path}: {why}")]
    Content {
        /// The path.
        path: RepoPath,
        /// What is wrong.
        why: String,
    },
    /// The repository that git converts in could not be made.
    #[error("could not prepare {}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A blob could not be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What decides conversions besides attributes (`core.autocrlf`, `core.eol`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EolSettings(pub(crate) eol::Configuration);

impl EolSettings {
    /// The settings of a configuration file.
    pub(crate) fn read(config: &Path) -> Self {
        let config = crate::config_file::ConfigFile::read(config);
        let auto_crlf = match config.string("core", "autocrlf") {
            Some(value) if value.eq_ignore_ascii_case(b"input") => eol::AutoCrlf::Input,
            _ if config.boolean("core", "autocrlf") == Some(true) => eol::AutoCrlf::Enabled,
            _ => eol::AutoCrlf::Disabled,
        };
        let eol = match config.string("core", "eol") {
            Some(value) if value.eq_ignore_ascii_case(b"crlf") => Some(eol::Mode::CrLf),
            Some(value) if value.eq_ignore_ascii_case(b"lf") => Some(eol::Mode::Lf),
            _ => None,
        };
        Self(eol::Configuration { auto_crlf, eol })
    }

    /// The settings as git's command line takes them.
    fn overrides(self) -> Vec<String> {
        let auto = match self.0.auto_crlf {
            eol::AutoCrlf::Input => "input",
            eol::AutoCrlf::Enabled => "true",
            eol::AutoCrlf::Disabled => "false",
        };
        let eol = match self.0.eol {
            Some(eol::Mode::CrLf) => "crlf",
            Some(eol::Mode::Lf) => "lf",
            None => "native",
        };
        vec![
            "-c".into(),
            format!("core.autocrlf={auto}"),
            "-c".into(),
            format!("core.eol={eol}"),
            "-c".into(),
            "core.safecrlf=false".into(),
        ]
    }
}

/// Makes [`Converter`]s for one pinned tree.
#[derive(Debug, Clone)]
pub(crate) struct Conversions {
    pinned: Arc<PinnedTree>,
    settings: EolSettings,
    git: Git,
    /// Where repositories that git converts in are made when they are needed;
    /// the start of their names.
    helpers: PathBuf,
}

impl Conversions {
    pub(crate) fn new(
        pinned: Arc<PinnedTree>,
        settings: EolSettings,
        git: Git,
        helpers: PathBuf,
    ) -> Self {
        Self {
            pinned,
            settings,
            git,
            helpers,
        }
    }

    /// A converter for one thread's work.
    pub(crate) fn converter(&self) -> Converter {
        let options = pipeline::Options {
            drivers: Vec::new(),
            eol_config: self.settings.0,
            crlf_roundtrip_check: pipeline::CrlfRoundTripCheck::Skip,
            encodings_with_roundtrip_check: Vec::new(),
        };
        let hash = self.pinned.objects().hash();
        Converter {
            pipeline: Pipeline::new(gix::command::Context::default(), hash, options),
            attributes: self.pinned.attributes(),
            shared: self.clone(),
        }
    }

    /// Whether content is always the same on both sides.
    fn is_identity(&self) -> bool {
        !self.pinned.has_attributes() && self.settings.0.auto_crlf == eol::AutoCrlf::Disabled
    }

    /// Makes a fresh repository for one conversion.
    fn helper(&self) -> Result<Helper<'_>, ConvertError> {
        let number = HELPERS.fetch_add(1, Ordering::Relaxed);
        let mut name = self.helpers.clone().into_os_string();
        name.push(format!("-{}-{number}", std::process::id()));
        let helper = Helper {
            shared: self,
            directory: PathBuf::from(name),
        };
        helper.make()?;
        Ok(helper)
    }
}

static HELPERS: AtomicU64 = AtomicU64::new(0);

/// A repository that borrows the base's objects and configures nothing. It
/// lives for one conversion, so that nobody can have written into it.
struct Helper<'a> {
    shared: &'a Conversions,
    directory: PathBuf,
}

impl Helper<'_> {
    fn make(&self) -> Result<(), ConvertError> {
        crate::removal::remove_tree(&self.directory)
            .map_err(|source| self.io(&self.directory, source.into()))?;
        for directory in ["objects/info", "objects/pack", "refs/heads", "work"] {
            let path = self.directory.join(directory);
            std::fs::create_dir_all(&path).map_err(|source| self.io(&path, source))?;
        }
        let objects = self.shared.pinned.objects();
        let mut alternates = crate::skeleton::quote_alternate(objects.directory());
        alternates.push(b'\n');
        let config = match objects.hash() {
            HashKind::Sha256 => {
                "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n"
            }
            _ => "[core]\n\trepositoryFormatVersion = 0\n",
        };
        for (name, bytes) in [
            ("objects/info/alternates", alternates.as_slice()),
            ("config", config.as_bytes()),
            ("HEAD", b"ref: refs/heads/none\n"),
        ] {
            let path = self.directory.join(name);
            std::fs::write(&path, bytes).map_err(|source| self.io(&path, source))?;
        }
        Ok(())
    }

    fn io(&self, path: &Path, source: std::io::Error) -> ConvertError {
        ConvertError::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// Runs git here. Blocks; for threads that may.
    fn run(&self, args: Vec<OsString>, input: Input) -> Result<Vec<u8>, ConvertError> {
        let settings = self.shared.settings.overrides();
        let mut full: Vec<OsString> = settings.into_iter().map(Into::into).collect();
        full.push(format!("--attr-source={}", self.shared.pinned.id()).into());
        full.extend(args);
        let run = Invocation::new(full)
            .git_dir(&self.directory)
            .work_tree(&self.directory.join("work"))
            .input(input);
        Ok(tokio::runtime::Handle::current().block_on(self.shared.git.run(run))?)
    }

    /// Checks one blob out, since only a checkout converts exactly as a checkout.
    fn check_out(&self, path: &RepoPath, id: &ObjectId) -> Result<Vec<u8>, ConvertError> {
        let mut record = format!("100644 {id}\t").into_bytes();
        record.extend_from_slice(path.as_bytes());
        record.push(0);
        let add = vec![
            "update-index".into(),
            "--add".into(),
            "-z".into(),
            "--index-info".into(),
        ];
        self.run(add, Input::Bytes(record))?;
        self.run(
            vec!["checkout-index".into(), "--quiet".into(), "--all".into()],
            Input::Nothing,
        )?;
        let file = self
            .directory
            .join("work")
            .join(std::ffi::OsStr::from_bytes(path.as_bytes()));
        std::fs::read(&file).map_err(|source| self.io(&file, source))
    }

    /// Stores bytes as the blob that `git add` would make of them.
    fn clean(&self, path: &RepoPath, bytes: Vec<u8>) -> Result<Vec<u8>, ConvertError> {
        let mut option = OsString::from("--path=");
        option.push(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let args = vec!["hash-object".into(), "-w".into(), option, "--stdin".into()];
        let answer = self.run(args, Input::Bytes(bytes))?;
        let id = String::from_utf8_lossy(answer.trim()).into_owned();
        self.run(
            vec!["cat-file".into(), "blob".into(), id.into()],
            Input::Nothing,
        )
    }
}

impl Drop for Helper<'_> {
    fn drop(&mut self) {
        // What stays lies in the attempt's directory and goes with it.
        let _ = crate::removal::remove_tree(&self.directory);
    }
}

/// Converts content; made for one thread.
pub(crate) struct Converter {
    pipeline: Pipeline,
    attributes: Option<gix::worktree::Stack>,
    shared: Conversions,
}

impl Converter {
    /// The checkout form of a blob.
    pub(crate) fn checkout_form(
        &mut self,
        path: &RepoPath,
        id: &ObjectId,
    ) -> Result<Vec<u8>, ConvertError> {
        if self.needs_git(path)? {
            return self.shared.helper()?.check_out(path, id);
        }
        let blob = self.shared.pinned.blob(id)?;
        self.with_line_ends(path, blob)
    }

    /// The checkout form of a blob's bytes, line ends only.
    fn with_line_ends(&mut self, path: &RepoPath, blob: Vec<u8>) -> Result<Vec<u8>, ConvertError> {
        if self.shared.is_identity() {
            return Ok(blob);
        }
        let attributes = &mut self.attributes;
        let odb = self.shared.pinned.objects().handle();
        let mut lookup = |path: &BStr, out: &mut gix::attrs::search::Outcome| {
            look_up(attributes, path, out, &odb)
        };
        let outcome = self
            .pipeline
            .convert_to_worktree(
                &blob,
                path.as_bytes().as_bstr(),
                &mut lookup,
                to_worktree::Options::default(),
            )
            .map_err(|error| content(path, &error))?;
        let bytes = outcome.as_bytes().map(<[u8]>::to_vec);
        Ok(bytes.unwrap_or(blob))
    }

    /// The clean form of a checkout's bytes.
    pub(crate) fn clean_form(
        &mut self,
        path: &RepoPath,
        bytes: Vec<u8>,
    ) -> Result<Vec<u8>, ConvertError> {
        if self.shared.is_identity() {
            return Ok(bytes);
        }
        if self.needs_git(path)? {
            return self.shared.helper()?.clean(path, bytes);
        }
        let attributes = &mut self.attributes;
        let pinned = self.shared.pinned.clone();
        let odb = pinned.objects().handle();
        let mut lookup = |path: &BStr, out: &mut gix::attrs::search::Outcome| {
            look_up(attributes, path, out, &odb)
        };
        // Automatic conversion leaves a file alone that has CRLF in the base.
        let mut known = |buffer: &mut Vec<u8>| {
            let Some(blob) = pinned
                .get(path)
                .and_then(|entry| pinned.blob(&entry.id).ok())
            else {
                return Ok(None);
            };
            *buffer = blob;
            Ok(Some(()))
        };
        let file = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let outcome = self
            .pipeline
            .convert_to_git(bytes.as_slice(), file, &mut lookup, &mut known)
            .map_err(|error| content(path, &error))?;
        Ok(match outcome {
            ToGitOutcome::Buffer(converted) => converted.to_vec(),
            // No driver is ever configured, so there is no process.
            ToGitOutcome::Unchanged(_) | ToGitOutcome::Process(_) => bytes,
        })
    }

    fn needs_git(&mut self, path: &RepoPath) -> Result<bool, ConvertError> {
        let Some(stack) = &mut self.attributes else {
            return Ok(false);
        };
        let mut outcome = stack.selected_attribute_matches(["working-tree-encoding", "ident"]);
        let odb = self.shared.pinned.objects().handle();
        stack
            .at_entry(path.as_bytes().as_bstr(), Some(Mode::FILE), &odb)
            .map_err(|error| content(path, &error))?
            .matching_attributes(&mut outcome);
        // `working-tree-encoding` counts with a value, `ident` when it is set.
        let found = outcome.iter_selected().any(|found| {
            let is_ident = found.assignment.name.as_str() == "ident";
            match found.assignment.state {
                gix::attrs::StateRef::Value(_) => !is_ident,
                gix::attrs::StateRef::Set => is_ident,
                _ => false,
            }
        });
        Ok(found)
    }
}

fn content(path: &RepoPath, error: &dyn std::fmt::Display) -> ConvertError {
    ConvertError::Content {
        path: path.clone(),
        why: error.to_string(),
    }
}

fn look_up(
    attributes: &mut Option<gix::worktree::Stack>,
    path: &BStr,
    out: &mut gix::attrs::search::Outcome,
    odb: &gix::odb::HandleArc,
) {
    if let Some(stack) = attributes
        && let Ok(platform) = stack.at_entry(path, Some(Mode::FILE), odb)
    {
        platform.matching_attributes(out);
    }
}
