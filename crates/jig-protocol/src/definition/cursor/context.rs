//! A place in the tree, and the collector of problems.

use std::fmt;
use std::rc::Rc;

use super::super::code::{Code, Severity};
use super::super::diagnostic::{Diagnostic, Span};
use super::super::yaml::{Kind, Node};

/// No one reads more than this; it also bounds the work of a hostile file.
const MOST_PROBLEMS: usize = 100;

/// Where a value stands: `phases[2].on_fail.run`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(Rc<str>),
    Index(usize),
}

impl Path {
    pub(in super::super) fn key(&self, key: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Key(key.into()));
        Self(steps)
    }

    pub(in super::super) fn index(&self, index: usize) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Index(index));
        Self(steps)
    }

    /// The path of `phases[index]`.
    pub(in super::super) fn phase(index: usize) -> Self {
        Self::default().key("phases").index(index)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) => {
                    let dot = if at == 0 { "" } else { "." };
                    write!(f, "{dot}{}", crate::text::head(key, 100))?;
                }
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Adds a problem unless there are too many already.
pub(in super::super) fn push_capped(
    problems: &mut Vec<Diagnostic>,
    problem: Diagnostic,
) -> &mut Diagnostic {
    if problems.len() >= MOST_PROBLEMS {
        problems.truncate(MOST_PROBLEMS);
    }
    problems.push(problem);
    let last = problems.len() - 1;
    &mut problems[last]
}

/// The text, its tree, and what is wrong with it.
pub(in super::super) struct Context<'t> {
    pub(in super::super) text: &'t str,
    root: Rc<Node>,
    problems: Vec<Diagnostic>,
    errors: usize,
}

impl<'t> Context<'t> {
    pub(in super::super) fn new(text: &'t str, root: Rc<Node>, problems: Vec<Diagnostic>) -> Self {
        let errors = problems.len();
        Self {
            text,
            root,
            problems,
            errors,
        }
    }

    pub(in super::super) fn root(&self) -> Rc<Node> {
        Rc::clone(&self.root)
    }

    /// Whether anything so far refuses the definition.
    pub(in super::super) fn failed(&self) -> bool {
        self.errors > 0
    }

    /// The problems, in the order of the text.
    pub(in super::super) fn into_problems(mut self) -> Vec<Diagnostic> {
        self.problems.truncate(MOST_PROBLEMS);
        self.problems
            .sort_by_key(|problem| (problem.span.start, problem.code));
        self.problems
    }

    /// A problem with the value at `path`.
    pub(in super::super) fn at(
        &mut self,
        code: Code,
        path: &Path,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        // Finding a place costs; past the cap no one will see it.
        let span = if self.problems.len() >= MOST_PROBLEMS {
            Span::default()
        } else {
            self.place(path)
        };
        self.span(code, span, path, message)
    }

    /// A problem with a place inside the value at `path`.
    pub(in super::super) fn span(
        &mut self,
        code: Code,
        span: Span,
        path: &Path,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        if code.severity() == Severity::Error {
            self.errors += 1;
        }
        let problem = Diagnostic::new(code, span, path.to_string(), message);
        push_capped(&mut self.problems, problem)
    }

    /// Where `needle` stands in the source of the text at `path`; else where the
    /// text does.
    pub(in super::super) fn find_in(&self, path: &Path, needle: &str) -> Span {
        let node = self.node(path);
        let Kind::Scalar(scalar) = &node.kind else {
            return node.span;
        };
        let (start, end) = scalar.range;
        match self
            .text
            .get(start..end)
            .and_then(|source| source.find(needle))
        {
            Some(at) => Span::in_text(self.text, start + at, start + at + needle.len()),
            None => node.span,
        }
    }

    /// Where the value at `path` stands; of what is missing, where its parent does.
    pub(in super::super) fn place(&self, path: &Path) -> Span {
        self.node(path).span
    }

    fn node(&self, path: &Path) -> &Node {
        let mut node = &self.root;
        for step in &path.0 {
            let next = match (&node.kind, step) {
                (Kind::Map(entries), Step::Key(key)) => entries
                    .iter()
                    .find(|entry| *entry.key == **key)
                    .map(|entry| &entry.value),
                (Kind::List(items), Step::Index(index)) => items.get(*index),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }
}
