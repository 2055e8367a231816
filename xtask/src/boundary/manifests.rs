//! The arrows as the manifests state them, read without any lock file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::workspace::Workspace;

/// The members of a workspace and what their manifests ask for.
#[derive(Debug)]
pub struct Manifests {
    /// Sorted by name.
    pub members: Vec<Member>,
}

/// One crate of ours.
#[derive(Debug)]
pub struct Member {
    /// The package name.
    pub name: String,
    /// The `description`, or nothing.
    pub description: Option<String>,
    /// Its manifest, from the root.
    pub manifest: String,
    /// Everything it depends on, ours or not.
    pub arrows: Vec<Arrow>,
    /// Whether it has a library target.
    pub is_library: bool,
}

/// One dependency of one crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    /// The real package name, whatever the manifest calls it.
    pub to: String,
    /// The section it stands in.
    pub kind: ArrowKind,
    /// The name it is given with `package = `.
    pub renamed: Option<String>,
    /// Whether a feature must ask for it.
    pub optional: bool,
    /// The platform it is limited to.
    pub target: Option<String>,
    /// The directory of a path dependency.
    pub path: Option<PathBuf>,
}

/// The section a dependency stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArrowKind {
    /// `[dependencies]`
    Normal,
    /// `[build-dependencies]`
    Build,
    /// `[dev-dependencies]`
    Dev,
}

impl Arrow {
    /// How the arrow is written in the manifest, for people.
    pub fn described(&self) -> String {
        let section = match self.kind {
            ArrowKind::Normal => "dependencies",
            ArrowKind::Build => "build-dependencies",
            ArrowKind::Dev => "dev-dependencies",
        };
        let mut words = match &self.target {
            Some(target) => format!("[target.'{target}'.{section}]"),
            None => format!("[{section}]"),
        };
        if self.optional {
            words.push_str(", optional");
        }
        if let Some(name) = &self.renamed {
            words.push_str(&format!(", renamed `{name}`"));
        }
        words
    }
}

impl Manifests {
    /// Asks cargo for the manifests of the workspace; the lock file is not read.
    ///
    /// # Errors
    ///
    /// When cargo fails, prints something else than metadata, or leaves out a
    /// crate that lies under `crates/`.
    pub fn read(workspace: &Workspace) -> Result<Self> {
        let printed = workspace
            .cargo_output(&[
                "metadata",
                "--format-version",
                "1",
                "--no-deps",
                "--offline",
            ])
            .context("the manifests cannot be read")?;
        let manifests = Self::parse(&printed, workspace.root())?;
        let known: BTreeSet<&str> = manifests
            .members
            .iter()
            .map(|m| m.manifest.as_str())
            .collect();
        for directory in workspace.crate_directories()? {
            let manifest = format!("crates/{directory}/Cargo.toml");
            ensure!(
                known.contains(manifest.as_str()),
                "{manifest} is no member of the workspace"
            );
        }
        Ok(manifests)
    }

    /// Reads the output of `cargo metadata --no-deps`.
    ///
    /// # Errors
    ///
    /// When it is not metadata, holds no package, or a package of another root.
    pub fn parse(printed: &str, root: &Path) -> Result<Self> {
        let metadata: Metadata =
            serde_json::from_str(printed).context("cargo metadata printed something else")?;
        ensure!(
            !metadata.packages.is_empty(),
            "cargo metadata names no package"
        );
        let root = root.canonicalize().context("cannot resolve the root")?;
        let mut members = Vec::new();
        for package in metadata.packages {
            members.push(package.into_member(&root)?);
        }
        members.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { members })
    }

    /// The member of that name.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// Whether a package name is one of ours.
    pub fn is_ours(&self, name: &str) -> bool {
        self.member(name).is_some()
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    description: Option<String>,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    rename: Option<String>,
    optional: bool,
    target: Option<String>,
    path: Option<PathBuf>,
}

impl Package {
    fn into_member(self, root: &Path) -> Result<Member> {
        let absolute = self
            .manifest_path
            .canonicalize()
            .with_context(|| format!("cannot resolve {}", self.manifest_path.display()))?;
        let manifest = absolute
            .strip_prefix(root)
            .with_context(|| format!("{} lies outside the workspace", absolute.display()))?
            .to_string_lossy()
            .into_owned();
        let arrows = self
            .dependencies
            .into_iter()
            .map(Dependency::into_arrow)
            .collect::<Result<_>>()?;
        Ok(Member {
            name: self.name,
            description: self.description,
            manifest,
            arrows,
            is_library: self
                .targets
                .iter()
                .any(|t| t.kind.iter().any(|k| k.ends_with("lib"))),
        })
    }
}

impl Dependency {
    fn into_arrow(self) -> Result<Arrow> {
        let kind = match self.kind.as_deref() {
            None => ArrowKind::Normal,
            Some("build") => ArrowKind::Build,
            Some("dev") => ArrowKind::Dev,
            Some(other) => anyhow::bail!("unknown kind `{other}` of the dependency {}", self.name),
        };
        Ok(Arrow {
            to: self.name,
            kind,
            renamed: self.rename,
            optional: self.optional,
            target: self.target,
            path: self.path,
        })
    }
}
