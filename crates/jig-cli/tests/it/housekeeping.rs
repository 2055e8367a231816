//! `jig gc`, `jig doctor`, `jig version`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::env::{Done, Env, finish};
use crate::trial::{DONE, ONE_AGENT, Trial};

/// Attempts of long ago, by their ids: nothing needs the first, the second has
/// its work tree, the third says nothing that can be read.
const OLD: [&str; 3] = [
    "01800000-0000-7000-8000-000000000001",
    "01800000-0000-7000-8000-000000000002",
    "01800000-0000-7000-8000-000000000003",
];

/// A data directory with one fresh attempt, three old ones, a directory of
/// somebody else, and a cache.
fn aged() -> (Trial, [PathBuf; 3]) {
    let script = format!("roles: {{builder: [{{write: {{src/a.txt: \"two\\n\"}}, {DONE}}}]}}");
    let trial = Trial::new(ONE_AGENT, &script);
    trial.run().expect(0);
    trial
        .env
        .file(&format!("data/attempts/{}/trace.jsonl", OLD[0]), "{}\n");
    trial
        .env
        .file(&format!("data/attempts/{}/tree/work", OLD[1]), "mine\n");
    trial
        .env
        .file(&format!("data/attempts/{}/manifest.json", OLD[2]), "{half");
    trial.env.file("data/attempts/notes/mine", "mine\n");
    trial.env.file("data/caches/cargo/registry", "x\n");
    let dirs = OLD.map(|id| trial.env.data().join("attempts").join(id));
    (trial, dirs)
}

fn jig(env: &Env, args: &[&str]) -> Done {
    env.jig(&env.path("home"), args)
}

#[test]
fn gc_says_what_would_go_and_what_stays_and_removes_nothing() {
    let (trial, [gone, kept, unread]) = aged();
    let done = jig(&trial.env, &["gc", "--dry-run", "--caches"]);
    let expected = format!(
        "would remove {}\nkeeps {}: its work tree was kept; release it first\n\
         keeps {}: its manifest cannot be read\nwould remove the download caches\n\
         would remove 1 attempt directory and 0 attempts from the store\n",
        gone.display(),
        kept.display(),
        unread.display()
    );
    assert_eq!(done.expect(0).stdout, expected);
    assert_eq!(done.stderr, "");
    assert!(gone.join("trace.jsonl").exists() && kept.exists() && unread.exists());
    assert!(trial.env.path("data/caches/cargo/registry").exists());
}

#[test]
fn gc_removes_what_nothing_needs_and_nothing_else() {
    let (trial, [gone, kept, unread]) = aged();
    let done = jig(&trial.env, &["gc", "--json"]).expect(0).json();
    let stay = |dir: &PathBuf, why: &str| format!("{}: {why}", dir.display());
    assert_eq!(
        done,
        json!({
            "dry_run": false,
            "directories": [gone],
            "attempts": [],
            "stay": [
                stay(&kept, "its work tree was kept; release it first"),
                stay(&unread, "its manifest cannot be read"),
            ],
            "caches": false,
            "problems": [],
        })
    );
    assert!(!gone.exists());
    assert_eq!(std::fs::read(kept.join("tree/work")).unwrap(), b"mine\n");
    assert!(unread.join("manifest.json").exists());
    assert!(trial.env.path("data/attempts/notes/mine").exists());
    assert!(trial.env.path("data/caches/cargo/registry").exists());
    assert_eq!(
        trial.ask(&["attempt", "show"])[0]["state"],
        "accepted_unpublished"
    );
    let again = jig(&trial.env, &["gc"]);
    let last = again.expect(0).stdout.lines().last().unwrap();
    assert_eq!(
        last,
        "removed 0 attempt directories and 0 attempts from the store"
    );
}

#[test]
fn gc_removes_caches_only_while_no_run_may_use_them() {
    let (mut trial, _) = aged();
    let cache = trial.env.path("data/caches/cargo/registry");
    trial.script(&format!(
        "roles: {{builder: [{{run: 'touch @DIR@/ready; until test -e @DIR@/go; do sleep 0.1; done', {DONE}}}]}}"
    ));
    let run = trial.start();
    trial.wait_for_file("ready");
    let refused = jig(&trial.env, &["gc", "--caches", "--json"]);
    let problems = refused.expect(1).json()["problems"].take();
    assert!(
        problems[0].as_str().unwrap().contains("a run is going on"),
        "{problems}"
    );
    assert!(
        refused.stderr.contains("warning: caches: "),
        "{}",
        refused.stderr
    );
    assert!(cache.exists());
    trial.env.file("go", "");
    finish(run).expect(0);
    let done = jig(&trial.env, &["gc", "--caches"]);
    assert!(
        done.expect(0)
            .stdout
            .contains("removed the download caches\n")
    );
    assert!(!cache.exists());
}

#[test]
fn version_is_said_to_people_and_to_programs() {
    let env = Env::new();
    let version = env!("CARGO_PKG_VERSION");
    let object = jig(&env, &["version", "--json"]).expect(0).json();
    assert_eq!(object["version"], version);
    let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["commit", "version"]);
    let commit = object["commit"].as_str().unwrap_or("unknown commit");
    let said = jig(&env, &["version"]).expect(0).stdout.clone();
    assert_eq!(said, format!("jig {version} ({commit})\n"));
    assert_eq!(
        jig(&env, &["--version"]).expect(0).stdout,
        format!("jig {version}\n")
    );
}

/// What doctor finds, by name: level and detail.
fn doctor(env: &Env, code: i32, name: &str) -> (String, String, Option<String>) {
    let done = jig(env, &["doctor", "--json"]);
    let findings: Vec<Value> = (done.expect(code).stdout.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&str> = findings
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "git",
            "claude-code",
            "codex",
            "sandbox",
            "data directory",
            "free disk"
        ]
    );
    let found = findings.iter().find(|it| it["name"] == name).unwrap();
    let level = found["level"].as_str().unwrap().to_owned();
    let detail = found["detail"].as_str().unwrap().to_owned();
    let advice = found["advice"].as_str().map(str::to_owned);
    // People are told the same, with a mark.
    let prose = jig(env, &["doctor"]).expect(code).stdout.clone();
    let mark = match level.as_str() {
        "ok" => "ok  ",
        "warning" => "note",
        _ => "FAIL",
    };
    assert!(
        prose.contains(&format!("{mark} {name}: {detail}\n")),
        "{prose}"
    );
    let arrow = advice.as_ref().map(|advice| format!("       → {advice}\n"));
    assert!(prose.contains(&arrow.unwrap_or_default()), "{prose}");
    (level, detail, advice)
}

/// An environment whose PATH is one directory of these programs.
fn with_programs(programs: &[(&str, &str)]) -> Env {
    let mut env = Env::new();
    std::fs::create_dir(env.path("bin")).unwrap();
    for (name, content) in programs {
        let program = env.file(&format!("bin/{name}"), content);
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    env.vars.insert("PATH".into(), env.path("bin").into());
    env
}

const GIT: (&str, &str) = ("git", "#!/bin/sh\necho git version 2.47.1\n");

/// What an agent CLI says of itself.
const CLAUDE: (&str, &str) = (
    "claude",
    "#!/bin/sh\ncase \"$1\" in --version) echo '2.1.332 (Claude Code)';; *) echo '--print \
     --output-format --verbose --include-partial-messages --permission-mode --setting-sources \
     --strict-mcp-config --session-id --resume --system-prompt --tools --effort --max-budget-usd \
     --json-schema';; esac\n",
);

#[test]
fn doctor_says_what_is_missing_and_what_to_do_about_it() {
    let env = with_programs(&[GIT]);
    assert_eq!(
        doctor(&env, 0, "git"),
        ("ok".into(), "version 2.47".into(), None)
    );
    let (level, detail, advice) = doctor(&env, 0, "claude-code");
    assert_eq!(
        (level.as_str(), detail.as_str()),
        ("warning", "not installed")
    );
    assert!(advice.unwrap().contains("npm install"));

    let env = with_programs(&[GIT, CLAUDE]);
    let (level, detail, advice) = doctor(&env, 0, "claude-code");
    assert_eq!(
        (level.as_str(), detail.as_str()),
        ("warning", "version 2.1.332, not logged in")
    );
    assert!(advice.unwrap().contains("`claude /login`"));

    let env = with_programs(&[("git", "#!/bin/sh\necho git version 2.30.2\n")]);
    let (level, detail, advice) = doctor(&env, 1, "git");
    assert_eq!(level, "problem");
    assert!(detail.contains("2.30"), "{detail}");
    assert!(advice.unwrap().contains("install git 2.41"));
    let (level, _, advice) = doctor(&with_programs(&[]), 1, "git");
    assert_eq!(level, "problem");
    assert!(advice.unwrap().contains("install git 2.41"));
}

/// What it says of Codex.
const CODEX: (&str, &str) = (
    "codex",
    "#!/bin/sh\ncase \"$1\" in --version) echo codex-cli 0.171.0;; *) echo '[SESSION_ID] --json \
     --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox --output-schema';; esac\n",
);

/// A secret of a login or of a variable: told nowhere.
const SECRET: &str = "SECRET-OF-THE-OPERATOR";

#[test]
fn doctor_says_of_each_agent_whether_it_is_logged_in_and_no_secret() {
    let claude = |until: i64| {
        json!({"claudeAiOauth": {"accessToken": SECRET, "refreshToken": SECRET, "expiresAt": until}})
            .to_string()
    };
    let token = |until: i64| {
        use base64::Engine as _;
        let claims = json!({"exp": until, "email": SECRET}).to_string();
        format!(
            "e30.{}.c2ln",
            base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(claims)
        )
    };
    let codex = |until: i64| {
        let tokens = json!({"access_token": token(until), "refresh_token": SECRET});
        json!({"OPENAI_API_KEY": null, "tokens": tokens}).to_string()
    };
    let key = json!({"OPENAI_API_KEY": SECRET}).to_string();
    let own = "model_provider = \"mine\"\n[model_providers.mine]\nenv_key = \"MINE_KEY\"\n\
               http_headers = {x = \"SECRET-OF-THE-OPERATOR\"}\n";
    let (claude_file, codex_file) = (".claude/.credentials.json", ".codex/auth.json");
    let config = ".codex/config.toml";
    let v = "version 2.1.332,";
    let c = "version 0.171.0,";
    let far = 4_102_444_800;
    for (agent, files, variable, level, detail) in [
        (
            "claude-code",
            vec![],
            "",
            "warning",
            format!("{v} not logged in"),
        ),
        (
            "claude-code",
            vec![(claude_file, "{".to_owned())],
            "",
            "warning",
            format!("{v} not logged in"),
        ),
        (
            "claude-code",
            vec![(claude_file, claude(far * 1000))],
            "",
            "ok",
            format!("{v} logged in until 2100-01-01T00:00:00.000000Z"),
        ),
        (
            "claude-code",
            vec![(claude_file, claude(1000))],
            "",
            "warning",
            format!("{v} login expired at 1970-01-01T00:00:01.000000Z"),
        ),
        (
            "claude-code",
            vec![],
            "ANTHROPIC_API_KEY",
            "ok",
            format!("{v} not logged in, ANTHROPIC_API_KEY set"),
        ),
        ("codex", vec![], "", "warning", format!("{c} not logged in")),
        (
            "codex",
            vec![(codex_file, key)],
            "",
            "ok",
            format!("{c} logged in"),
        ),
        (
            "codex",
            vec![(codex_file, codex(far))],
            "",
            "ok",
            format!("{c} logged in until 2100-01-01T00:00:00.000000Z"),
        ),
        (
            "codex",
            vec![(codex_file, codex(1))],
            "",
            "warning",
            format!("{c} login expired at 1970-01-01T00:00:01.000000Z"),
        ),
        (
            "codex",
            vec![],
            "CODEX_API_KEY",
            "ok",
            format!("{c} not logged in, CODEX_API_KEY set"),
        ),
        (
            "codex",
            vec![(config, own.to_owned())],
            "MINE_KEY",
            "warning",
            format!("{c} needs no login, MINE_KEY set"),
        ),
    ] {
        let mut env = with_programs(&[GIT, CLAUDE, CODEX]);
        for (file, content) in &files {
            env.file(&format!("home/{file}"), content);
        }
        if !variable.is_empty() {
            env.vars.insert(variable.into(), SECRET.into());
        }
        let found = doctor(&env, 0, agent);
        assert_eq!((found.0.as_str(), found.1), (level, detail));
        assert_eq!(found.2.is_some(), level == "warning");
        for args in [&["doctor"][..], &["doctor", "--json"]] {
            let done = jig(&env, args);
            let said = format!("{}{}", done.stdout, done.stderr);
            assert!(!said.contains(SECRET), "{said}");
        }
        // What was read is as it was, and nothing was added.
        for (file, content) in files {
            let now = std::fs::read_to_string(env.path("home").join(file)).unwrap();
            assert_eq!(now, content);
        }
    }
}

#[test]
fn doctor_looks_at_the_data_directory_and_makes_none() {
    let mut env = with_programs(&[GIT]);
    let data = env.data();
    let place = |env: &Env, code| doctor(env, code, "data directory");
    let shown = format!("{} (made by the first run)", data.display());
    assert_eq!(place(&env, 0), ("ok".into(), shown, None));
    assert!(!data.exists());

    let file = env.file("a file", "kept");
    for path in [file.clone(), file.join("below/it")] {
        env.vars.insert("JIG_HOME".into(), path.into());
        let (level, detail, advice) = place(&env, 1);
        let not = format!("{} is not a directory", file.display());
        assert_eq!((level.as_str(), detail), ("problem", not));
        assert!(advice.unwrap().contains("--data"));
    }

    let locked = env.path("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
    // Nobody keeps the superuser out.
    if std::fs::write(locked.join("probe"), "").is_err() {
        env.vars
            .insert("JIG_HOME".into(), locked.join("data").into());
        let (level, detail, advice) = place(&env, 1);
        let not = format!("{} cannot be written", locked.display());
        assert_eq!((level.as_str(), detail), ("problem", not));
        assert!(advice.unwrap().contains("chown"));
    }

    env.file("data/jig.db", &"this is no database ".repeat(500));
    env.vars.insert("JIG_HOME".into(), data.into());
    let (level, detail, advice) = place(&env, 1);
    assert_eq!(level, "problem");
    assert!(detail.contains("is damaged"), "{detail}");
    assert!(advice.unwrap().contains("move jig.db"));
}
