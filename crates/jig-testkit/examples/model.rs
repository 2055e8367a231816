//! A model on loopback to try an agent, or jig with an agent, against by hand.
//! It has `jig-note.txt` written, and says so in the form that jig asks for. Told
//! that `You review`, it changes nothing and finds everything good.
//!
//! `cargo run -p jig-testkit --example model` prints what an agent needs to ask
//! it, and answers until its standard input ends.

#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

use std::io::Read as _;

use jig_testkit::model::{KEY, ModelServer, Request, Script, Step, Vendor};
use serde_json::json;

fn main() {
    let answers = || Step::from_request(answer).repeated();
    let server = ModelServer::start(Script::new().anthropic([answers()]).openai([answers()]));
    println!(
        "export ANTHROPIC_BASE_URL={} ANTHROPIC_API_KEY={KEY}",
        server.url()
    );
    println!("export LOOPBACK_KEY={KEY}  # and for Codex, in config.toml:\n");
    println!("{}", server.codex_config());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    server.finish();
}

/// Writes first and then says that it did.
fn answer(request: &Request) -> Step {
    if request.contains("You review") {
        return Step::text(envelope("It is good.", &[]));
    }
    if request.contains("a note\n") {
        return Step::text(envelope("Wrote a note.", &["jig-note.txt"]));
    }
    match request.vendor {
        Some(Vendor::OpenAi) => Step::custom_tool(
            "apply_patch",
            "*** Begin Patch\n*** Add File: jig-note.txt\n+a note\n*** End Patch\n",
        ),
        _ => Step::tool(
            "Write",
            json!({"file_path": "jig-note.txt", "content": "a note\n"}),
        ),
    }
}

fn envelope(summary: &str, changed: &[&str]) -> String {
    json!({
        "status": "success",
        "summary": summary,
        "artifacts": changed,
        "changed_files": changed,
        "notes_for_next_agent": "",
    })
    .to_string()
}
