//! `cargo tree` read back into a graph.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::Workspace;

/// Everything below one crate, as cargo resolves it.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    below: Vec<BTreeSet<usize>>,
}

#[derive(Debug)]
struct Node {
    name: String,
    version: String,
    features: BTreeSet<String>,
}

impl Tree {
    /// Asks cargo for everything below the crate, for all platforms and with all
    /// of its own features: an optional road down is a road down.
    ///
    /// `-p` keeps the features that other members ask for out of it, and
    /// `--locked` keeps the question from changing the answer.
    ///
    /// # Errors
    ///
    /// When cargo fails (a stale lock file included) or prints no such tree.
    pub fn read(workspace: &Workspace, name: &str) -> Result<Self> {
        let printed = workspace.cargo_output(&[
            "tree",
            "-p",
            name,
            "-e",
            "normal,build",
            "--target",
            "all",
            "--all-features",
            "--offline",
            "--locked",
            "--prefix",
            "depth",
            "--charset",
            "ascii",
            "--format",
            "|{p}|{f}|",
        ])?;
        Self::parse(&printed, name)
    }

    /// Reads the output of `cargo tree --prefix depth --format '|{p}|{f}|'`.
    ///
    /// A package that was shown before comes back as one line marked `(*)`, so
    /// lines with the same package and features are one node.
    ///
    /// # Errors
    ///
    /// When the text is empty, does not begin with the crate, or has a line that
    /// is not understood.
    pub fn parse(printed: &str, name: &str) -> Result<Self> {
        let mut tree = Self {
            nodes: Vec::new(),
            below: Vec::new(),
        };
        let mut known: BTreeMap<(String, String), usize> = BTreeMap::new();
        let mut ancestors: Vec<usize> = Vec::new();
        for line in printed.lines().filter(|line| !line.trim().is_empty()) {
            let (depth, package, features) =
                split(line).with_context(|| format!("`{line}` is no line of cargo tree"))?;
            ensure!(
                depth <= ancestors.len(),
                "`{line}` skips a level of cargo tree"
            );
            ensure!(
                depth > 0 || ancestors.is_empty(),
                "cargo tree shows a second root: `{line}`"
            );
            let index = match known.get(&(package.to_owned(), features.to_owned())) {
                Some(index) => *index,
                None => {
                    let index = tree.add(package, features)?;
                    known.insert((package.to_owned(), features.to_owned()), index);
                    index
                }
            };
            ancestors.truncate(depth);
            if let Some(parent) = ancestors.last() {
                tree.below[*parent].insert(index);
            }
            ancestors.push(index);
        }
        match tree.nodes.first() {
            None => bail!("cargo tree printed nothing for {name}"),
            Some(first) if first.name != name => {
                bail!("cargo tree begins with {} instead of {name}", first.name)
            }
            Some(_) => Ok(tree),
        }
    }

    fn add(&mut self, package: &str, features: &str) -> Result<usize> {
        let mut words = package.split(' ');
        let name = words.next().filter(|word| !word.is_empty());
        let version = words.next().and_then(|word| word.strip_prefix('v'));
        let (Some(name), Some(version)) = (name, version) else {
            bail!("`{package}` is no package of cargo tree");
        };
        self.nodes.push(Node {
            name: name.to_owned(),
            version: version.to_owned(),
            features: features
                .split(',')
                .filter(|f| !f.is_empty())
                .map(str::to_owned)
                .collect(),
        });
        self.below.push(BTreeSet::new());
        Ok(self.nodes.len() - 1)
    }

    /// The shortest way from the crate down to a package, or nothing.
    pub fn path_to(&self, package: &str) -> Option<String> {
        self.path(|node| node.name == package)
    }

    /// The shortest way down to a package that has a feature on, or nothing.
    pub fn path_to_feature(&self, package: &str, feature: &str) -> Option<String> {
        self.path(|node| node.name == package && node.features.contains(feature))
    }

    fn path(&self, wanted: impl Fn(&Node) -> bool) -> Option<String> {
        let mut came_from: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut queue = VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            if at != 0 && wanted(&self.nodes[at]) {
                return Some(self.spell(at, &came_from));
            }
            for next in &self.below[at] {
                if *next != 0 && came_from[*next].is_none() {
                    came_from[*next] = Some(at);
                    queue.push_back(*next);
                }
            }
        }
        None
    }

    fn spell(&self, end: usize, came_from: &[Option<usize>]) -> String {
        let mut steps = Vec::new();
        let mut at = Some(end);
        while let Some(index) = at {
            let node = &self.nodes[index];
            steps.push(format!("{} {}", node.name, node.version));
            at = came_from[index];
        }
        steps.reverse();
        steps.join(" -> ")
    }
}

/// `12|name v1.2.3 (source)|feature,feature| (*)` into its parts.
fn split(line: &str) -> Option<(usize, &str, &str)> {
    let (depth, rest) = line.split_once('|')?;
    let (package, rest) = rest.split_once('|')?;
    let (features, mark) = rest.split_once('|')?;
    matches!(mark.trim(), "" | "(*)").then_some(())?;
    Some((depth.parse().ok()?, package, features))
}
