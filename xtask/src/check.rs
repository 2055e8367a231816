//! The parts of the check, each of which also runs alone.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::commands::{self, Outcome};
use crate::finding::Finding;
use crate::workspace::Workspace;
use crate::{boundary, documents, generated, npm, picture, size, source, tidy, words, workflows};

/// One part of the check.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it looks at, for the help.
    pub about: &'static str,
    /// Whether `check` runs it.
    pub in_check: bool,
    run: fn(&Workspace) -> Result<Outcome>,
}

/// Every part, in the order of the check: what is quick and needs no build first.
pub const PARTS: [Part; 18] = [
    Part {
        name: "fetch",
        about: "every locked package is on this machine",
        in_check: true,
        run: commands::fetch,
    },
    Part {
        name: "fmt",
        about: "rustfmt agrees",
        in_check: true,
        run: commands::fmt,
    },
    Part {
        name: "boundary",
        about: "crates use what layers.toml grants them",
        in_check: true,
        run: run_boundary,
    },
    Part {
        name: "words",
        about: "words stand where words.toml puts them",
        in_check: true,
        run: run_words,
    },
    Part {
        name: "size",
        about: "product files keep to size.toml",
        in_check: true,
        run: run_size,
    },
    Part {
        name: "tidy",
        about: "crate docs, attributes, mod.rs, shared settings, workflows",
        in_check: true,
        run: run_tidy,
    },
    Part {
        name: "documents",
        about: "dependency list, links, no local paths",
        in_check: true,
        run: run_documents,
    },
    Part {
        name: "clippy",
        about: "clippy has nothing to say",
        in_check: true,
        run: commands::clippy,
    },
    Part {
        name: "generated",
        about: "derived files are in step (JIG_BLESS=1 writes them)",
        in_check: true,
        run: run_generated,
    },
    Part {
        name: "definitions",
        about: "the stock definitions are valid",
        in_check: true,
        run: commands::definitions,
    },
    Part {
        name: "wasm",
        about: "jig-protocol builds without an operating system",
        in_check: true,
        run: commands::wasm,
    },
    Part {
        name: "test",
        about: "all tests and examples",
        in_check: true,
        run: commands::test,
    },
    Part {
        name: "docs",
        about: "the documentation builds",
        in_check: true,
        run: commands::docs,
    },
    Part {
        name: "deny",
        about: "licences, sources, bans (needs cargo-deny)",
        in_check: false,
        run: commands::deny,
    },
    Part {
        name: "real-clis",
        about: "installs the agent programs that tests drive (needs npm)",
        in_check: false,
        run: npm::real_clis,
    },
    Part {
        name: "real-acp",
        about: "installs the agent of the Agent Client Protocol that a test drives on request (needs npm)",
        in_check: false,
        run: npm::real_acp,
    },
    Part {
        name: "bless",
        about: "writes the derived files anew",
        in_check: false,
        run: run_bless,
    },
    Part {
        name: "picture",
        about: "draws docs/demo.svg from a run of the demo",
        in_check: false,
        run: picture::draw,
    },
];

/// The part of that name.
pub fn part(name: &str) -> Option<Part> {
    PARTS.into_iter().find(|part| part.name == name)
}

/// What one part came to.
#[derive(Debug)]
pub struct Report {
    /// The part.
    pub part: Part,
    /// What it came to; an error means that it could not look, which is a failure.
    pub outcome: Result<Outcome>,
    /// How long it took.
    pub elapsed: Duration,
}

impl Report {
    /// Whether the part lets the check pass.
    pub fn passed(&self) -> bool {
        match &self.outcome {
            Ok(Outcome::Ran(findings)) => findings.is_empty(),
            Ok(Outcome::Skipped(_)) => true,
            Err(_) => false,
        }
    }
}

impl Part {
    /// Runs the part.
    pub fn run(self, workspace: &Workspace) -> Report {
        let start = Instant::now();
        let outcome = (self.run)(workspace);
        Report {
            part: self,
            outcome,
            elapsed: start.elapsed(),
        }
    }
}

fn ran(findings: Result<Vec<Finding>>) -> Result<Outcome> {
    findings.map(Outcome::Ran)
}

fn run_boundary(workspace: &Workspace) -> Result<Outcome> {
    ran(boundary::check(workspace))
}

fn run_words(workspace: &Workspace) -> Result<Outcome> {
    ran(words::check(workspace, &source::read_all(workspace)?))
}

fn run_size(workspace: &Workspace) -> Result<Outcome> {
    ran(size::check(workspace, &source::read_all(workspace)?))
}

fn run_tidy(workspace: &Workspace) -> Result<Outcome> {
    let mut findings = tidy::check(workspace, &source::read_all(workspace)?)?;
    findings.extend(workflows::check(workspace)?);
    ran(Ok(findings))
}

fn run_documents(workspace: &Workspace) -> Result<Outcome> {
    ran(documents::check(workspace))
}

fn run_generated(workspace: &Workspace) -> Result<Outcome> {
    ran(generated::check(workspace, false))
}

fn run_bless(workspace: &Workspace) -> Result<Outcome> {
    ran(generated::check(workspace, true))
}
