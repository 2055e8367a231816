//! `--help` of every command.

use crate::env::Env;

/// Every command, as it is typed.
const COMMANDS: [&str; 20] = [
    "",
    "run",
    "demo",
    "def",
    "def validate",
    "def explain",
    "def schema",
    "attempt",
    "attempt show",
    "attempt events",
    "attempt diff",
    "attempt gates",
    "attempt envelopes",
    "worktree",
    "worktree list",
    "worktree show",
    "worktree release",
    "gc",
    "doctor",
    "version",
];

/// The commands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn help_goes_to_stdout_with_an_example_and_the_exit_codes() {
    let env = Env::new();
    let mut seen = vec![String::new()];
    for command in COMMANDS {
        let mut args: Vec<&str> = command.split_whitespace().collect();
        args.push("--help");
        let done = env.jig(&env.path("home"), &args);
        let help = &done.expect(0).stdout;
        assert_eq!(done.stderr, "", "{command}");
        assert!(help.contains(&format!("Usage: jig {command}")), "{help}");
        let example = help.lines().skip_while(|line| !line.starts_with("Example"));
        let example = example.skip(1).take_while(|line| line.starts_with("  "));
        let examples: Vec<&str> = example.map(str::trim).collect();
        assert!(!examples.is_empty(), "{help}");
        assert!(
            examples.iter().all(|line| line.starts_with("jig ")),
            "{examples:?}"
        );
        for code in ["  0 ", "  1 ", "  2 ", "  3 ", "  130 "] {
            let codes = help.split("Exit codes:\n").nth(1).unwrap();
            assert!(codes.contains(code), "{command}: {codes}");
        }
        assert!(help.ends_with('\n'));
        let below = listed(help);
        seen.extend(
            below
                .into_iter()
                .map(|sub| format!("{command} {sub}").trim().to_owned()),
        );
    }
    seen.sort();
    let mut expected = COMMANDS.map(str::to_owned);
    expected.sort();
    assert_eq!(
        seen, expected,
        "every command is listed here and in the help above it"
    );
}

#[test]
fn help_may_be_asked_for_as_a_command_too() {
    let env = Env::new();
    let home = env.path("home");
    for command in COMMANDS {
        let words: Vec<&str> = command.split_whitespace().collect();
        let flag = env.jig(&home, &[&words[..], &["--help"]].concat());
        let asked = env.jig(&home, &[&["help"], &words[..]].concat());
        assert_eq!(asked.expect(0).stdout, flag.stdout, "{command}");
    }
    let unknown = env.jig(&home, &["help", "unheard-of"]);
    assert!(unknown.expect(2).stderr.contains("unheard-of"));
}

#[test]
fn the_help_of_run() {
    let env = Env::new();
    let done = env.jig(&env.path("home"), &["run", "-h"]);
    insta::assert_snapshot!(done.expect(0).stdout, @r#"
    Run one definition against one local repository

    Usage: jig run [OPTIONS] --def <FILE> [REPO] <PROMPT>
           jig run [OPTIONS] --def <FILE> --prompt-file <FILE> [REPO]

    Arguments:
      [REPO PROMPT]...  The repository (default `.`) and what is to be done in it

    Options:
          --def <FILE>                The definition file
          --prompt-file <FILE>        Read the prompt from a file (`-` is standard input)
          --runtime <NAME>            Who acts: `scripted` replaces every runtime of the run, another
                                      name the definition's default [default: the definition's, else
                                      claude-code]
          --script <FILE>             With --runtime scripted: what each role does (see
                                      docs/scripted-runtime.md)
          --param <K=V>               A parameter of the definition's prompts (repeatable)
          --in-place                  Work in the checkout itself instead of a tree of its own
          --allow-dirty               With --in-place: accept uncommitted changes (they are saved and
                                      restored exactly)
          --no-seed-auth              Do not copy the agent CLI's login into the role's home
          --require-sandbox[=<TIER>]  Refuse to run below this sandbox tier; this version has none and
                                      always refuses [possible values: landlock, namespace]
          --no-sandbox                Run without a kernel sandbox
          --keep                      Keep the work tree also when the result was accepted
      -h, --help                      Print help (see more with '--help')

    Options of every command:
          --data <DIR>   Where jig keeps everything [default: $JIG_HOME, else ~/.jig]
          --json         Print one machine-readable object (or one per line) instead of prose
          --log <LEVEL>  What is logged to stderr: off, error, warn, info, debug, trace, or a filter
                         [default: warn]
          --no-progress  No live progress on the terminal

    Examples:
      jig run --def two-phase.yaml "Add a note about the build"
      jig run --def factory.yaml ../service --prompt-file task.md --json
      jig run --def smoke.yaml --runtime scripted --script smoke.script.yaml . "Look around"

    One positional is the PROMPT; with --prompt-file it is the REPO.

    The run starts from the commit that is checked out in REPO, in a tree of its own: what is
    uncommitted is not seen and not touched. An accepted result is a new branch of REPO,
    `jig/<job>/1`; nothing is merged or pushed. `jig attempt show` says what happened.

    Exit codes:
      0    accepted, or done
      1    infrastructure: no verdict
      2    wrong usage, or an invalid definition
      3    rejected: jig worked and the answer is no (also when cancelled)
      130  a second Ctrl-C while unwinding
    "#);
}
