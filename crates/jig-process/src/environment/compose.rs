//! The composition of an environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::tools::{CACHES, CacheKind, PASSED, TOOLCHAINS};

/// The whole environment of a child: these variables and no others.
///
/// `Debug` shows the names only, since values may be secrets; for the same
/// reason it has no serialised form.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// An environment without a variable.
    #[must_use]
    pub const fn empty() -> Self {
        Self(BTreeMap::new())
    }

    /// The environment with `name` set to `value`, whatever it was.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets `name` to `value`, whatever it was.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.0.insert(name.into(), value.into());
    }

    /// The value of `name`.
    #[must_use]
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(n, v)| (n.as_os_str(), v.as_os_str()))
    }
}

impl IntoIterator for Environment {
    type Item = (OsString, OsString);
    type IntoIter = std::collections::btree_map::IntoIter<OsString, OsString>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(n, v)| (n.into(), v.into()))
                .collect(),
        )
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The variables of the HOME family, with their place below the HOME.
pub const HOME_FAMILY: &[(&str, &str)] = &[
    ("HOME", ""),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// Whether a variable is never taken from the operator, even when asked for:
/// it would re-point the HOME, load code into every program, or steer git.
#[must_use]
pub fn is_never_taken(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name == b"HOME"
        || name == b"TMPDIR"
        || [b"XDG_".as_slice(), b"LD_", b"DYLD_", b"GIT_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// What an environment is composed of.
#[derive(Clone)]
pub struct Composition<'a> {
    /// The operator's environment, as whoever owns `main` read it.
    pub operator: &'a BTreeMap<OsString, OsString>,
    /// The child's own HOME.
    pub home: &'a Path,
    /// The child's own directory for temporary files.
    pub tmp: &'a Path,
    /// Names that are taken from the operator when they exist there.
    pub allow: &'a [String],
    /// The directory of shared downloads, when there is one.
    pub caches: Option<&'a Path>,
    /// Variables of jig's own; they win over everything.
    pub extra: &'a [(OsString, OsString)],
}

impl Composition<'_> {
    /// Composes the environment. `exists` says whether a path exists; it is
    /// asked only about the default places of toolchains.
    #[must_use]
    pub fn compose(&self, exists: &dyn Fn(&Path) -> bool) -> Environment {
        let mut env = Environment::empty();
        self.take_path(&mut env);
        self.take_toolchains(&mut env, exists);
        self.set_caches(&mut env);
        for name in self.allow {
            self.take(&mut env, name.trim());
        }
        env.set("LANG", "C.UTF-8");
        env.set("TERM", "dumb");
        for (name, below) in HOME_FAMILY {
            let place = if below.is_empty() {
                self.home.to_owned()
            } else {
                self.home.join(below)
            };
            env.set(*name, place);
        }
        env.set("TMPDIR", self.tmp);
        for (name, value) in self.extra {
            env.set(name, value);
        }
        env
    }

    fn operators(&self, name: &str) -> Option<&OsString> {
        self.operator.get(OsStr::new(name))
    }

    fn take(&self, env: &mut Environment, name: &str) {
        if is_never_taken(OsStr::new(name)) {
            return;
        }
        if let Some(value) = self.operators(name) {
            env.set(name, value);
        }
    }

    fn take_path(&self, env: &mut Environment) {
        match self.operators("PATH") {
            Some(path) => env.set("PATH", path),
            // Without one, every program would make up its own.
            None => env.set("PATH", "/usr/local/bin:/usr/bin:/bin"),
        }
    }

    fn take_toolchains(&self, env: &mut Environment, exists: &dyn Fn(&Path) -> bool) {
        let operators_home = self.operators("HOME").map(PathBuf::from);
        for toolchain in TOOLCHAINS {
            if self.operators(toolchain.variable).is_some() {
                self.take(env, toolchain.variable);
            } else if let Some(home) = &operators_home {
                let place = home.join(toolchain.default_below_home);
                if exists(&place) {
                    env.set(toolchain.variable, place);
                }
            }
        }
        for name in PASSED {
            self.take(env, name);
        }
    }

    fn set_caches(&self, env: &mut Environment) {
        let Some(caches) = self.caches else { return };
        for cache in CACHES {
            let place = match cache.kind {
                CacheKind::Whole => caches.join(cache.tool),
                CacheKind::Parts { below_home, .. } => self.home.join(below_home),
            };
            env.set(cache.variable, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn operator(pairs: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
        pairs.iter().map(|(n, v)| (n.into(), v.into())).collect()
    }

    fn compose(
        operator: &BTreeMap<OsString, OsString>,
        allow: &[String],
        caches: Option<&Path>,
        existing: &[&str],
    ) -> Environment {
        Composition {
            operator,
            home: Path::new("/att/home"),
            tmp: Path::new("/att/tmp"),
            allow,
            caches,
            extra: &[("JIG_PHASE".into(), "build".into())],
        }
        .compose(&|path| existing.iter().any(|e| Path::new(e) == path))
    }

    fn lines(env: &Environment) -> String {
        env.iter()
            .map(|(n, v)| format!("{}={}\n", n.to_string_lossy(), v.to_string_lossy()))
            .collect()
    }

    #[test]
    fn the_whole_environment_of_a_role() {
        let operator = operator(&[
            ("HOME", "/home/op"),
            ("PATH", "/home/op/.cargo/bin:/usr/bin"),
            ("AWS_SECRET_ACCESS_KEY", "s3cret"),
            ("API_KEY", "asked for"),
            ("LANG", "de_DE.UTF-8"),
            ("JAVA_HOME", "/opt/java"),
            ("NVM_DIR", "/opt/nvm"),
        ]);
        let allow = ["API_KEY".to_owned(), "MISSING".to_owned()];
        let env = compose(
            &operator,
            &allow,
            Some(Path::new("/cache")),
            &["/home/op/.rustup"],
        );
        insta::assert_snapshot!(lines(&env), @r"
        API_KEY=asked for
        CARGO_HOME=/att/home/.cargo
        GOMODCACHE=/cache/go
        HOME=/att/home
        JAVA_HOME=/opt/java
        JIG_PHASE=build
        LANG=C.UTF-8
        NVM_DIR=/opt/nvm
        PATH=/home/op/.cargo/bin:/usr/bin
        PIP_CACHE_DIR=/cache/pip
        RUSTUP_HOME=/home/op/.rustup
        TERM=dumb
        TMPDIR=/att/tmp
        XDG_CACHE_HOME=/att/home/.cache
        XDG_CONFIG_HOME=/att/home/.config
        XDG_DATA_HOME=/att/home/.local/share
        XDG_STATE_HOME=/att/home/.local/state
        npm_config_cache=/att/home/.npm
        ");
    }

    #[test]
    fn what_would_repoint_or_load_is_never_taken() {
        let names = [
            "HOME",
            "TMPDIR",
            "XDG_RUNTIME_DIR",
            "LD_PRELOAD",
            "DYLD_X",
            "GIT_DIR",
        ];
        let pairs: Vec<_> = names.iter().map(|name| (*name, "/evil")).collect();
        let allow: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let env = compose(&operator(&pairs), &allow, None, &[]);
        assert!(!lines(&env).contains("/evil"), "{}", lines(&env));
    }

    #[test]
    fn debug_shows_names_and_no_values() {
        let shown = format!("{:?}", Environment::empty().with("TOKEN", "hunter2"));
        assert_eq!(shown, r#"{"TOKEN"}"#);
    }

    proptest! {
        #[test]
        fn nothing_unasked_passes(
            pairs in proptest::collection::btree_map("[A-Z_]{1,8}", "[a-z]{1,8}", 0..12),
            pick in proptest::collection::vec(any::<bool>(), 12),
        ) {
            let operator: BTreeMap<OsString, OsString> =
                pairs.iter().map(|(n, v)| (n.into(), format!("op-{v}").into())).collect();
            let allow: Vec<String> = pairs.keys().zip(&pick)
                .filter(|(_, picked)| **picked).map(|(n, _)| n.clone()).collect();
            let env = compose(&operator, &allow, None, &[]);
            for (name, value) in env.iter() {
                if value.as_bytes().starts_with(b"op-") {
                    let name = name.to_string_lossy().into_owned();
                    let is_toolchain = PASSED.contains(&name.as_str())
                        || TOOLCHAINS.iter().any(|t| t.variable == name);
                    prop_assert!(allow.contains(&name) || name == "PATH" || is_toolchain);
                    prop_assert!(!is_never_taken(OsStr::new(&name)));
                }
            }
        }
    }
}
