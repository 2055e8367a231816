//! A login that is missing or runs out ends a run before anything is sent; one
//! that is there is copied for the send, and nothing of it stays or goes back.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use jig_testkit::streams::files_with;
use serde_json::{Value, json};

use crate::env::Done;
use crate::trial::{ONE_AGENT, Trial};

const TOKEN: &str = "TOKEN-OF-THE-OPERATOR";

/// A stand-in: it answers questions and says how the copy of the login looks
/// that it finds.
struct Agent {
    runtime: &'static str,
    command: &'static str,
    script: &'static str,
    /// Where the login lies below a HOME.
    file: &'static str,
    log_in: &'static str,
}

const CLAUDE: Agent = Agent {
    runtime: "claude-code",
    command: "claude",
    script: r#"#!/bin/sh
case "$1" in
--version) echo "2.1.332 (Claude Code)"; exit 0;;
--help) echo "--print --output-format --verbose --include-partial-messages --permission-mode --setting-sources --strict-mcp-config --session-id --resume --system-prompt --tools --effort --max-budget-usd --json-schema"; exit 0;;
esac
echo sent >> @DIR@/sent
stat -c %a "$HOME/.claude/.credentials.json" > @DIR@/mode
cat "$HOME/.claude/.credentials.json" > @DIR@/copy
echo '{"type":"result","subtype":"success","is_error":false,"result":"{\"status\":\"success\",\"summary\":\"s\"}"}'
"#,
    file: ".claude/.credentials.json",
    log_in: "claude /login",
};

const CODEX: Agent = Agent {
    runtime: "codex",
    command: "codex",
    script: r#"#!/bin/sh
case "$*" in
--version) echo "codex-cli 0.171.0"; exit 0;;
*--help) echo "[SESSION_ID] --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox"; exit 0;;
esac
echo sent >> @DIR@/sent
stat -c %a "$CODEX_HOME/auth.json" > @DIR@/mode
cat "$CODEX_HOME/auth.json" > @DIR@/copy
echo '{"type":"item.completed","item":{"id":"a","type":"agent_message","text":"{\"status\":\"success\",\"summary\":\"s\"}"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
"#,
    file: ".codex/auth.json",
    log_in: "codex login",
};

impl Agent {
    /// A login that is good for so many seconds from now.
    fn login(&self, seconds: i64) -> Value {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let until = i64::try_from(now).unwrap() + seconds;
        if self.runtime == "claude-code" {
            return json!({"claudeAiOauth": {"accessToken": TOKEN, "refreshToken": "REFRESH",
                "expiresAt": until * 1000}, "mcpOAuth": {"x": {"accessToken": "OTHER"}}});
        }
        use base64::Engine as _;
        let claims = json!({"exp": until, "sub": TOKEN}).to_string();
        let claims = base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(claims);
        json!({"tokens": {"access_token": format!("e30.{claims}.c2ln"), "id_token": TOKEN,
            "refresh_token": "REFRESH"}})
    }

    fn trial(&self) -> Trial {
        let mut trial = Trial::new(ONE_AGENT, "roles: {}");
        let script = self.script.replace("@DIR@", &trial.marker());
        let program = trial.env.file(&format!("bin/{}", self.command), &script);
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}/bin:{}", trial.marker(), std::env::var("PATH").unwrap());
        trial.env.vars.insert("PATH".into(), path.into());
        trial
    }

    fn log_in(&self, trial: &Trial, login: &Value) -> PathBuf {
        let file = format!("home/{}", self.file);
        trial.env.file(&file, &login.to_string())
    }

    fn run(&self, trial: &Trial, more: &[&str]) -> Done {
        let mut flags = vec!["--runtime", self.runtime];
        flags.extend(more);
        crate::env::finish(trial.start_with(&flags))
    }
}

#[test]
fn a_login_that_is_missing_or_runs_out_sends_nothing() {
    for agent in [CLAUDE, CODEX] {
        for (login, named) in [
            (None, agent.log_in),
            (Some(agent.login(-10)), "runs out at"),
            // Good now, and not to the end of a phase of half an hour.
            (Some(agent.login(60)), "runs out at"),
        ] {
            let trial = agent.trial();
            if let Some(login) = &login {
                agent.log_in(&trial, login);
            }
            let report = agent.run(&trial, &[]).expect(1).json();
            assert_eq!(report["cause"], "auth", "{report}");
            assert_eq!(report["spend"]["sends"], 0, "{report}");
            let error = report["error"].as_str().unwrap();
            assert!(error.contains(named), "{error}");
            assert!(error.contains("log in"), "{error}");
            assert!(!trial.env.path("sent").exists(), "it was started");
            let kept = files_with(&trial.env.data(), TOKEN.as_bytes());
            assert_eq!(kept, Vec::<PathBuf>::new());
            trial.assert_nobody_left();
        }
    }
}

#[test]
fn a_login_is_copied_for_the_send_without_what_renews_it() {
    for agent in [CLAUDE, CODEX] {
        let trial = agent.trial();
        let login = agent.login(10 * 60 * 60);
        let file = agent.log_in(&trial, &login);
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let opened = std::fs::File::options().write(true).open(&file).unwrap();
        opened.set_modified(long_ago).unwrap();
        let report = agent.run(&trial, &[]).expect(0).json();
        assert_eq!(report["outcome"], "accepted", "{report}");
        let read = |name: &str| std::fs::read_to_string(trial.env.path(name)).unwrap();
        assert_eq!(read("mode"), "600\n");
        let copy = read("copy");
        assert!(
            !copy.contains("REFRESH") && !copy.contains("OTHER"),
            "{copy}"
        );
        let copy: Value = serde_json::from_str(&copy).unwrap();
        let token = |login: &Value| match agent.runtime {
            "codex" => login["tokens"]["access_token"].clone(),
            _ => login["claudeAiOauth"]["accessToken"].clone(),
        };
        assert_eq!(token(&copy), token(&login));
        // The operator's own is as it was.
        assert_eq!(std::fs::read_to_string(&file).unwrap(), login.to_string());
        assert_eq!(file.metadata().unwrap().modified().unwrap(), long_ago);
        assert_eq!(
            files_with(&trial.env.data(), TOKEN.as_bytes()),
            Vec::<PathBuf>::new()
        );
        trial.assert_nobody_left();
    }
}

#[test]
fn without_a_copy_the_send_is_made_all_the_same() {
    for agent in [CLAUDE, CODEX] {
        let trial = agent.trial();
        agent.log_in(&trial, &agent.login(-10));
        agent.run(&trial, &["--no-seed-auth"]).expect(0);
        let sent = std::fs::read_to_string(trial.env.path("sent")).unwrap();
        assert_eq!(sent, "sent\n");
        assert_eq!(std::fs::read_to_string(trial.env.path("copy")).unwrap(), "");
    }
}
