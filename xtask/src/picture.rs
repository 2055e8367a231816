//! The picture of a run in the README: runs the demo and draws what it says as an
//! SVG that looks like a terminal. Everything that differs from run to run (ids,
//! times, where the data lies) is replaced, so that the file changes only when
//! what a person sees does.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::commands::Outcome;
use crate::workspace::Workspace;

/// Where the picture is kept.
const PICTURE: &str = "docs/demo.svg";

/// Longest line of the picture, in characters; longer ones end in `…`.
const COLUMNS: usize = 100;

/// Size of a character cell and of the margin, in pixels.
const CELL: (f64, f64) = (8.43, 20.0);
const MARGIN: f64 = 20.0;
/// Height of the bar at the top of the window.
const BAR: f64 = 36.0;

/// Runs the demo in a data directory of its own and writes the picture.
///
/// # Errors
///
/// When the demo cannot be run, does not end well, or the picture cannot be written.
pub fn draw(workspace: &Workspace) -> Result<Outcome> {
    let data = scratch()?;
    let said = demo(workspace, &data);
    std::fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
    let path = workspace.root().join(PICTURE);
    std::fs::write(&path, svg(&lines(&said?, &data)))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Outcome::Ran(Vec::new()))
}

fn scratch() -> Result<PathBuf> {
    let dir = std::env::temp_dir().join(format!("jig-picture-{}", std::process::id()));
    std::fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    dir.canonicalize()
        .with_context(|| format!("cannot find {}", dir.display()))
}

/// What the demo says on both of its streams, in the order in which it says it.
fn demo(workspace: &Workspace, data: &Path) -> Result<String> {
    let (mut from, to) = std::io::pipe().context("cannot make a pipe")?;
    let mut command = workspace.cargo();
    command
        .args(["run", "--quiet", "--locked", "--package", "jig-cli", "--"])
        .arg("demo")
        .env("JIG_HOME", data)
        .stdout(to.try_clone().context("cannot share a pipe")?)
        .stderr(to);
    let mut child = command.spawn().context("cannot start the demo")?;
    // The command holds the other ends of the pipe, which must close to end it.
    drop(command);
    let mut said = String::new();
    from.read_to_string(&mut said)
        .context("cannot read what the demo says")?;
    let status = child.wait().context("cannot wait for the demo")?;
    ensure!(status.success(), "the demo failed ({status}):\n{said}");
    Ok(said)
}

/// A command that is offered, as it is called once it is installed.
fn called_jig(line: &str) -> String {
    match line.split_once("/jig attempt") {
        Some((_, rest)) => format!("  jig attempt{rest}"),
        None => line.to_owned(),
    }
}

/// What the demo said, as it is drawn.
fn lines(said: &str, data: &Path) -> Vec<String> {
    let data = data.to_string_lossy();
    let mut ids = Vec::new();
    let mut lines = vec!["$ jig demo".to_owned()];
    lines.extend(said.trim_end().lines().map(|line| {
        let line = line.replace(data.as_ref(), "~/.jig");
        let line = without_times(&shorter_ids(&called_jig(&line), &mut ids));
        cut(&line)
    }));
    lines
}

fn cut(line: &str) -> String {
    if line.chars().count() <= COLUMNS {
        return line.to_owned();
    }
    let mut kept: String = line.chars().take(COLUMNS - 1).collect();
    kept.push('…');
    kept
}

/// Every UUID becomes the same first digits and the number of its first
/// appearance: `0199…01`.
fn shorter_ids(line: &str, ids: &mut Vec<String>) -> String {
    const LENGTH: usize = 36;
    let mut out = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        match rest.get(..LENGTH).filter(|id| is_uuid(id)) {
            Some(id) => {
                let known = ids.iter().position(|other| other == id);
                let number = known.unwrap_or_else(|| {
                    ids.push(id.to_owned());
                    ids.len() - 1
                });
                let _ = write!(out, "0199…{:02x}", 0x3a + 0x11 * number);
                rest = &rest[LENGTH..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// Takes out the words that are durations (`0.4s`, `1m05s`).
fn without_times(line: &str) -> String {
    let Some((before, after)) = line
        .match_indices("  ")
        .map(|(at, gap)| (&line[..at], &line[at + gap.len()..]))
        .find(|(_, after)| is_time(after.split(' ').next().unwrap_or_default()))
    else {
        return line.to_owned();
    };
    let rest = after.split_once(' ').map_or("", |(_, rest)| rest);
    if rest.is_empty() {
        return before.to_owned();
    }
    format!("{before} {rest}")
}

fn is_time(word: &str) -> bool {
    word.strip_suffix('s').is_some_and(|number| {
        number.starts_with(|c: char| c.is_ascii_digit())
            && number
                .chars()
                .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'm'))
    })
}

/// The lines as a window of a terminal.
fn svg(lines: &[String]) -> String {
    let columns = lines.iter().map(|line| line.chars().count()).max();
    let width = 2.0 * MARGIN + CELL.0 * columns.unwrap_or(0) as f64;
    let height = BAR + MARGIN + CELL.1 * lines.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" role=\"img\" aria-labelledby=\"title desc\" \
         width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n\
         <title id=\"title\">jig demo in a terminal</title>\n\
         <desc id=\"desc\">What the command says, line by line: the phases of the stock factory, \
         a failed test and a review that are each repaired, and the accepted result.</desc>\n\
         <style>\n{STYLE}</style>\n\
         <rect class=\"window\" x=\"0.5\" y=\"0.5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"9\"/>\n",
        width - 1.0,
        height - 1.0
    );
    for (at, class) in [(18, "d1"), (36, "d2"), (54, "d3")] {
        let _ = writeln!(
            out,
            "<circle class=\"{class}\" cx=\"{at}\" cy=\"18\" r=\"5.5\"/>"
        );
    }
    for (row, line) in lines.iter().enumerate() {
        let y = BAR + CELL.1 * (row as f64 + 0.8);
        let _ = write!(out, "<text x=\"{MARGIN:.0}\" y=\"{y:.0}\">");
        for (class, text) in spans(line) {
            let text = escaped(text);
            let _ = match class {
                "" => write!(out, "{text}"),
                class => write!(out, "<tspan class=\"{class}\">{text}</tspan>"),
            };
        }
        out.push_str("</text>\n");
    }
    out.push_str("</svg>\n");
    out
}

const STYLE: &str = "\
text { font: 14px ui-monospace, 'SF Mono', 'DejaVu Sans Mono', Menlo, Consolas, monospace;
  white-space: pre; fill: #d6dae0 }
.window { fill: #16191f; stroke: #343a45 }
.d1 { fill: #f2685f } .d2 { fill: #f0bd4e } .d3 { fill: #5fc454 }
.ok { fill: #6fcf7c } .no { fill: #f47b74 } .again { fill: #f0c060 } .dim { fill: #8b94a3 }
.strong { fill: #ffffff; font-weight: 600 }
@media (prefers-color-scheme: light) {
  text { fill: #2b303a } .window { fill: #fbfbfc; stroke: #d0d5dd }
  .ok { fill: #1a7f37 } .no { fill: #c9302c } .again { fill: #8f5a00 } .dim { fill: #68707d }
  .strong { fill: #000000 }
}
";

/// A line in parts, each with the class of its colour.
fn spans(line: &str) -> Vec<(&'static str, &str)> {
    const WHOLE: [(&str, &str); 6] = [
        ("  – ", "dim"),
        ("run: ", "dim"),
        ("job: ", "dim"),
        ("attempt: ", "dim"),
        ("trace: ", "dim"),
        ("spend: ", "dim"),
    ];
    const MARKS: [(&str, &str); 6] = [
        ("$ ", "dim"),
        ("  ✓", "ok"),
        ("  ✗", "no"),
        ("  ↻", "again"),
        ("accepted", "ok"),
        ("  ok ", "ok"),
    ];
    if let Some((_, class)) = WHOLE.iter().find(|(start, _)| line.starts_with(start)) {
        return vec![(class, line)];
    }
    let Some((mark, class)) = MARKS.iter().find(|(mark, _)| line.starts_with(mark)) else {
        return vec![("", line)];
    };
    let (mark, rest) = line.split_at(mark.len());
    if *class == "dim" {
        return vec![("dim", mark), ("strong", rest)];
    }
    // What a repair or a failure says about itself is an aside.
    match rest.find(" — ").or_else(|| rest.rfind("  $")) {
        Some(at) => vec![(class, mark), ("", &rest[..at]), ("dim", &rest[at..])],
        None => vec![(class, mark), ("", rest)],
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
The factory works on /tmp/p-7/demo/1
  ✓ plan  0.5s  $0.02
  ✗ test  1m05s — it said: 3 < 4 & more
run:     01a22ef2-ccf8-7b72-b19e-b27789993684
job:     01a22ef2-cd00-7a69-b828-2ee83aec3a87
accepted (branch jig/01a22ef2-cd00-7a69-b828-2ee83aec3a87/1)
";

    #[test]
    fn what_differs_from_run_to_run_is_replaced() {
        let drawn = lines(SAID, Path::new("/tmp/p-7"));
        assert_eq!(
            drawn,
            [
                "$ jig demo",
                "The factory works on ~/.jig/demo/1",
                "  ✓ plan  $0.02",
                "  ✗ test — it said: 3 < 4 & more",
                "run:     0199…3a",
                "job:     0199…4b",
                "accepted (branch jig/0199…4b/1)",
            ]
        );
        let other = SAID
            .replace("ccf8", "ccf9")
            .replace("cd00", "cd0a")
            .replace("0.5s", "1.7s")
            .replace("p-7", "p-8");
        assert_eq!(lines(&other, Path::new("/tmp/p-8")), drawn);
    }

    #[test]
    fn a_line_is_cut_between_characters_and_drawn_as_text() {
        let cut = lines(&"ü".repeat(COLUMNS + 1), Path::new("/x")).remove(1);
        assert_eq!(cut.chars().count(), COLUMNS);
        assert!(cut.ends_with('…'));
        let svg = svg(&lines(SAID, Path::new("/tmp/p-7")));
        assert!(svg.contains("3 &lt; 4 &amp; more"), "{svg}");
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }
}
