//! What toolchains need to keep working under a HOME that is not the
//! operator's.

use std::path::{Path, PathBuf};

/// A variable that names where a toolchain lives, and where that is by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Toolchain {
    /// The variable.
    pub variable: &'static str,
    /// The default place, below the operator's HOME.
    pub default_below_home: &'static str,
}

const fn toolchain(variable: &'static str, default_below_home: &'static str) -> Toolchain {
    Toolchain {
        variable,
        default_below_home,
    }
}

/// Toolchain managers whose shims on `PATH` look below HOME.
///
/// The operator's own value is taken when set; else the default place, when it
/// exists.
pub const TOOLCHAINS: &[Toolchain] = &[
    toolchain("RUSTUP_HOME", ".rustup"),
    toolchain("PYENV_ROOT", ".pyenv"),
    toolchain("NVM_DIR", ".nvm"),
    toolchain("VOLTA_HOME", ".volta"),
    toolchain("ASDF_DATA_DIR", ".asdf"),
    toolchain("MISE_DATA_DIR", ".local/share/mise"),
    toolchain("RBENV_ROOT", ".rbenv"),
    toolchain("SDKMAN_DIR", ".sdkman"),
];

/// Toolchain variables that have no default below HOME; taken when set.
pub const PASSED: &[&str] = &["GOROOT", "JAVA_HOME"];

/// What of a tool's directory may be shared between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    /// The variable names a directory of downloads and nothing else.
    Whole,
    /// The variable names a directory that also holds configuration and
    /// programs. It stays private, at this place below HOME; only these parts
    /// of it are links into the cache.
    Parts {
        /// The private directory, below the child's HOME.
        below_home: &'static str,
        /// The parts that hold downloads.
        parts: &'static [&'static str],
    },
}

/// A tool that keeps downloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolCache {
    /// Name of the tool's directory inside the cache directory.
    pub tool: &'static str,
    /// The variable that moves its downloads.
    pub variable: &'static str,
    /// What may be shared.
    pub kind: CacheKind,
}

/// The tools whose downloads outlive an attempt.
pub const CACHES: &[ToolCache] = &[
    ToolCache {
        tool: "cargo",
        variable: "CARGO_HOME",
        // A `config.toml` or a program planted here would run in the next phase.
        kind: CacheKind::Parts {
            below_home: ".cargo",
            parts: &["registry", "git"],
        },
    },
    ToolCache {
        tool: "go",
        variable: "GOMODCACHE",
        kind: CacheKind::Whole,
    },
    ToolCache {
        tool: "npm",
        variable: "npm_config_cache",
        // `_npx` beside it holds programs, which `npx` runs.
        kind: CacheKind::Parts {
            below_home: ".npm",
            parts: &["_cacache"],
        },
    },
    ToolCache {
        tool: "pip",
        variable: "PIP_CACHE_DIR",
        kind: CacheKind::Whole,
    },
];

/// A symbolic link that a HOME needs so that a tool finds its shared downloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheLink {
    /// Where the link is, below the HOME.
    pub link: PathBuf,
    /// The directory it names, below the cache directory. Both must be made by
    /// whoever prepares the HOME.
    pub target: PathBuf,
}

/// The links that `home` needs for the caches in `caches`.
#[must_use]
pub fn cache_links(home: &Path, caches: &Path) -> Vec<CacheLink> {
    let mut links = Vec::new();
    for cache in CACHES {
        if let CacheKind::Parts { below_home, parts } = cache.kind {
            links.extend(parts.iter().map(|part| CacheLink {
                link: home.join(below_home).join(part),
                target: caches.join(cache.tool).join(part),
            }));
        }
    }
    links
}
