//! A model on loopback: what the genuine agent programs talk to in tests.
//!
//! It speaks Anthropic Messages and OpenAI Responses, streaming and plain, and
//! answers what the test has scripted: texts, thoughts, tool calls, the
//! vendors' own errors, streams that break or never end, and figures of use.
//! No timer is in it: what has to be late waits for a [`Gate`] that the test
//! opens.
//!
//! ```
//! use jig_testkit::model::{ModelServer, Script, Step};
//! use serde_json::json;
//!
//! let server = ModelServer::start(
//!     Script::new()
//!         .anthropic([
//!             Step::text("I write it.").and_tool("Write", json!({"file_path": "a", "content": "b"})),
//!             Step::text(r#"{"status": "success"}"#),
//!         ])
//!         .queue(
//!             "reviewer",
//!             |request| request.contains("You review"),
//!             [Step::error(429).header("retry-after", "1"), Step::text("fine")],
//!         ),
//! );
//! let environment = server.claude_env();
//! // … run the agent …
//! assert_eq!(server.steps_left(), 4);
//! server.finish();
//! ```
//!
//! A request takes the next step of the first queue whose predicate holds for
//! it, else of its vendor's own queue. A script that is used up answers 500
//! and fails the test in [`ModelServer::finish`], or when the server is
//! dropped. Start reading at [`Script`] and [`Step`].

mod anthropic;
mod body;
mod clients;
mod gate;
mod openai;
mod request;
mod script;
mod serve;
mod server;
mod state;
mod step;

pub use clients::KEY;
pub use gate::Gate;
pub use request::{Request, StepTaken, Vendor};
pub use script::Script;
pub use server::ModelServer;
pub use step::{Step, Stop, Usage};
