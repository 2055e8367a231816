//! One file after the other, then what one file says of another.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use super::lexer::{Token, lex};
use super::{test_code, uses};
use crate::workspace::Workspace;

/// One Rust file.
#[derive(Debug)]
pub struct Source {
    /// From the root of the workspace.
    pub path: String,
    /// The text as it is.
    pub text: String,
    /// Without comments; imports spelled out.
    pub tokens: Vec<Token>,
    /// Whether the whole file is compiled for tests, benches or examples only.
    pub is_test: bool,
    /// Lines (from 1) inside inline test modules.
    pub test_module_lines: BTreeSet<usize>,
}

impl Source {
    /// How many lines are product code: all that are not in a test module.
    pub fn product_lines(&self) -> usize {
        self.text.lines().count() - self.test_module_lines.len()
    }
}

/// All Rust files of the workspace, with test code marked across files: a module
/// declared under `#[cfg(test)]` is test code in its own file too.
///
/// # Errors
///
/// When a file cannot be read, or there is none.
pub fn read_all(workspace: &Workspace) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut test_files = BTreeSet::new();
    for path in workspace.files(&["rs"])? {
        let text = workspace.read(&path)?;
        let mut tokens = lex(&text).with_context(|| format!("{path} is not understood"))?;
        let marked = test_code::mark(&mut tokens);
        test_files.extend(marked.modules.iter().flat_map(|module| module.files(&path)));
        let is_test = marked.whole_file || in_test_directory(&path);
        let test_module_lines = marked.module_lines;
        let tokens = uses::spell_out(tokens);
        sources.push(Source {
            path,
            text,
            tokens,
            is_test,
            test_module_lines,
        });
    }
    for source in &mut sources {
        source.is_test |= test_files.iter().any(|file| is_below(&source.path, file));
        if source.is_test {
            source
                .tokens
                .iter_mut()
                .for_each(|token| token.in_test = true);
        }
    }
    Ok(sources)
}

/// `tests/`, `benches/` and `examples/` of a crate.
fn in_test_directory(path: &str) -> bool {
    let directories: Vec<&str> = path.split('/').collect();
    directories[..directories.len() - 1]
        .iter()
        .take_while(|name| **name != "src")
        .any(|name| matches!(*name, "tests" | "benches" | "examples"))
}

/// Whether `path` is the module file or one of the files of its children.
fn is_below(path: &str, module: &str) -> bool {
    let children = module.strip_suffix("mod.rs").map_or_else(
        || format!("{}/", module.trim_end_matches(".rs")),
        str::to_owned,
    );
    path == module || path.starts_with(&children)
}
