//! Lines as messages of JSON-RPC 2.0, and messages as lines.

use serde_json::{Value, json};

/// No such method, in the words of JSON-RPC.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are not what the method takes.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// The agent wants its user to authenticate first.
pub(crate) const AUTH_REQUIRED: i64 = -32000;

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// The answer to a request of jig's.
    Response {
        /// The request's id; `None` when it is no id that jig gives.
        id: Option<u64>,
        outcome: Result<Value, RpcError>,
    },
    /// Something that the agent wants an answer to.
    Request {
        /// Whatever the agent calls it.
        id: Value,
        method: String,
        params: Value,
    },
    /// Something that the agent only tells.
    Notification { method: String, params: Value },
}

/// An error in place of a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    /// What the agent said of it, details included.
    pub(crate) message: String,
}

/// The messages of a line: one, or several in an array. `None` when the line is
/// none, an empty list when it says nothing.
pub(crate) fn read(line: &[u8]) -> Option<Vec<Message>> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Some(Vec::new());
    }
    match jig_runtime::json::parse(line)? {
        Value::Array(values) => values.into_iter().map(message).collect(),
        value => message(value).map(|message| vec![message]),
    }
}

fn message(value: Value) -> Option<Message> {
    let Value::Object(mut fields) = value else {
        return None;
    };
    let id = fields.remove("id").filter(|id| !id.is_null());
    let params = fields.remove("params").unwrap_or_default();
    if let Some(Value::String(method)) = fields.remove("method") {
        return Some(match id {
            Some(id) => Message::Request { id, method, params },
            None => Message::Notification { method, params },
        });
    }
    let outcome = match (fields.remove("error"), fields.remove("result")) {
        (Some(error), _) if !error.is_null() => Err(rpc_error(&error)),
        (_, Some(result)) => Ok(result),
        (_, None) => return None,
    };
    Some(Message::Response {
        id: id.as_ref().and_then(Value::as_u64),
        outcome,
    })
}

/// Agents put what happened into `message`, `data`, or a field of it.
fn rpc_error(error: &Value) -> RpcError {
    let data = &error["data"];
    let details = ["details", "message", "error"]
        .iter()
        .filter_map(|field| data[field].as_str())
        .chain(data.as_str())
        .next();
    let said = error["message"].as_str().unwrap_or("an error");
    RpcError {
        code: error["code"].as_i64().unwrap_or_default(),
        message: match details {
            Some(details) if !said.contains(details) => format!("{said}: {details}"),
            _ => said.to_owned(),
        },
    }
}

/// A request as a line.
pub(crate) fn request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// The answer to a request of the agent's, as a line.
pub(crate) fn answer(id: &Value, result: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// The answer to a request that jig does not know, as a line.
pub(crate) fn unknown_method(id: &Value) -> Vec<u8> {
    let error = json!({"code": METHOD_NOT_FOUND, "message": "Method not found"});
    line(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Option<Message> {
        read(line.as_bytes())?.into_iter().next()
    }

    #[test]
    fn lines_are_messages() {
        assert_eq!(
            one(r#"{"jsonrpc":"2.0","id":3,"result":null}"#),
            Some(Message::Response {
                id: Some(3),
                outcome: Ok(Value::Null)
            })
        );
        // No id of jig's: such a response answers nothing.
        for id in [r#""3""#, "-3", "3.5", "null", "{}"] {
            assert_eq!(
                one(&format!(r#"{{"id":{id},"result":1}}"#)),
                Some(Message::Response {
                    id: None,
                    outcome: Ok(json!(1))
                }),
                "{id}"
            );
        }
        assert_eq!(
            one(r#"{"id":"x","method":"fs/read_text_file","params":{"path":"/a"}}"#),
            Some(Message::Request {
                id: json!("x"),
                method: "fs/read_text_file".into(),
                params: json!({"path": "/a"})
            })
        );
        assert_eq!(
            one(r#"{"method":"x","id":null}"#),
            Some(Message::Notification {
                method: "x".into(),
                params: Value::Null
            })
        );
        let batch = read(br#"[{"method":"a"},{"id":1,"result":{}}]"#).unwrap();
        assert_eq!(batch.len(), 2);
        assert_eq!(read(b" \r"), Some(vec![]));
    }

    #[test]
    fn what_is_no_message_is_none() {
        for line in ["x", "1", "\"a\"", "{}", r#"{"id":1}"#, "[1]", "{\"id\":1,"] {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
        // A broken letter is no reason to lose a message.
        let read = read(b"{\"method\":\"\xff\"}").unwrap();
        assert!(
            matches!(&read[..], [Message::Notification { method, .. }] if method == "\u{fffd}"),
            "{read:?}"
        );
    }

    #[test]
    fn errors_say_what_the_agent_said_once() {
        for (error, expected) in [
            (
                r#"{"code":-32603,"message":"Internal error","data":{"details":"No sessions."}}"#,
                "Internal error: No sessions.",
            ),
            (
                r#"{"code":-32603,"message":"Internal error: x","data":"x"}"#,
                "Internal error: x",
            ),
            (r#"{"code":-32603,"data":{"errorName":"y"}}"#, "an error"),
            (r#""odd""#, "an error"),
        ] {
            let line = format!(r#"{{"id":1,"error":{error}}}"#);
            let Some(Message::Response {
                outcome: Err(error),
                ..
            }) = one(&line)
            else {
                panic!("{line}");
            };
            assert_eq!(error.message, expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_is_one_line_and_reads_back(id: u64, text in "\\PC{0,40}") {
            let params = json!({"text": format!("{text}\n")});
            let line = request(id, "session/prompt", &params);
            proptest::prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            let read = read(&line).unwrap();
            proptest::prop_assert_eq!(read, vec![Message::Request {
                id: json!(id), method: "session/prompt".into(), params,
            }]);
        }
    }
}
