//! What the README tells a newcomer to type works as it stands.

use crate::env::Env;
use crate::support::{branch, entries};

/// The README, as it is read.
fn readme() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    std::fs::read_to_string(path).unwrap()
}

/// The fenced blocks of a language, in order.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let parts = text.split(&fence).skip(1);
    parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect()
}

/// The words of a command as a shell would split them: quotes and comments.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('"').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
            continue;
        }
        let before = part.split('#').next().unwrap();
        words.extend(before.split_whitespace().map(str::to_owned));
        if before.len() < part.len() {
            break;
        }
    }
    words
}

#[test]
fn the_definition_of_the_readme_runs_as_it_says() {
    let readme = readme();
    let env = Env::new();
    let repo = env.repo("path/to/repository", &[("a", "a\n")]);
    for block in blocks(&readme, "yaml") {
        let name = if block.contains("note.script.yaml") {
            "note.script.yaml"
        } else {
            "note.yaml"
        };
        env.file(name, &block);
    }
    let commands: Vec<Vec<String>> = blocks(&readme, "console")
        .iter()
        .flat_map(|block| block.lines())
        .filter_map(|line| line.strip_prefix("$ jig "))
        .map(words)
        .collect();
    let mut accepted = 0;
    for command in &commands {
        let args: Vec<&str> = command.iter().map(String::as_str).collect();
        let is_run = args.first() == Some(&"run");
        if is_run && !args.contains(&"scripted") {
            // It needs the agent CLI; all but that is in order.
            let mut bare = Env::new();
            let path = env.path("no programs");
            std::fs::create_dir(&path).unwrap();
            std::os::unix::fs::symlink(git(), path.join("git")).unwrap();
            bare.vars.insert("PATH".into(), path.into());
            let done = bare.jig(&env.path(""), &args);
            assert!(
                done.expect(1).stderr.contains("claude was not found"),
                "{}",
                done.stderr
            );
            continue;
        }
        let done = env.jig(&env.path(""), &[&args[..], &["--json"]].concat());
        let report = done.expect(0).json();
        if is_run {
            accepted += 1;
            assert_eq!(entries(&report), ["write:success", "check:success"]);
            let branch = branch(&env, &repo, &report);
            let note = env.git(&repo, &["show", &format!("{branch}:NOTES.md")]);
            assert_eq!(note, "A project.\n");
        }
    }
    assert_eq!((commands.len(), accepted), (4, 1), "{commands:?}");
}

fn git() -> std::path::PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path)
        .map(|dir| dir.join("git"))
        .find(|file| file.is_file())
        .unwrap()
}
