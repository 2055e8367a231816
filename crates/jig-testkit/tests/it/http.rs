//! An HTTP client that shows what the wire shows.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use jig_testkit::model::ModelServer;
use serde_json::Value;

/// One request on a connection of its own.
pub(crate) struct Exchange {
    reader: BufReader<TcpStream>,
}

/// The head of an answer.
pub(crate) struct Head {
    pub(crate) status: u16,
    lines: Vec<String>,
}

impl Head {
    /// A header's value; `name` in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        (self.lines.iter())
            .filter_map(|line| line.split_once(": "))
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: String,
    /// Whether the body came to its end as HTTP says it does.
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The data of each event; each is named after its type.
    pub(crate) fn events(&self) -> Vec<Value> {
        let events = self.body.split("\n\n").filter(|event| !event.is_empty());
        let data = |event: &str| {
            let (name, data) = event.split_once('\n').unwrap();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(data["type"], name.strip_prefix("event: ").unwrap());
            data
        };
        events.map(data).collect()
    }
}

impl Exchange {
    /// Sends a request with these header lines and this body.
    pub(crate) fn begin(server: &ModelServer, line: &str, headers: &[&str], body: &[u8]) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        let mut head = format!("{line} HTTP/1.1\r\nhost: loopback\r\n");
        for header in headers {
            head += header;
            head += "\r\n";
        }
        head += "\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        stream.set_read_timeout(Some(jig_testkit::BOUND)).unwrap();
        Self {
            reader: BufReader::new(stream),
        }
    }

    pub(crate) fn head(&mut self) -> Head {
        let first = self.line();
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let mut lines = Vec::new();
        loop {
            match self.line() {
                line if line.is_empty() => return Head { status, lines },
                line => lines.push(line),
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end_matches("\r\n").to_owned()
    }

    /// The next chunk of a chunked body; empty at its end, `None` when the
    /// connection breaks before.
    pub(crate) fn chunk(&mut self) -> Option<String> {
        let mut size = String::new();
        let read = self.reader.read_line(&mut size).unwrap_or(0);
        if read == 0 {
            return None;
        }
        let mut data = vec![0; usize::from_str_radix(size.trim_end(), 16).unwrap() + 2];
        self.reader.read_exact(&mut data).ok()?;
        data.truncate(data.len() - 2);
        Some(String::from_utf8(data).unwrap())
    }

    /// The answer to a request that began with this line.
    pub(crate) fn end_of(mut self, line: &str) -> Answer {
        if !line.starts_with("HEAD ") {
            return self.end();
        }
        let (head, body) = (self.head(), String::new());
        Answer {
            head,
            body,
            whole: true,
        }
    }

    /// All of the answer.
    pub(crate) fn end(mut self) -> Answer {
        let head = self.head();
        if let Some(length) = head.header("content-length") {
            let mut body = vec![0; length.parse().unwrap()];
            self.reader.read_exact(&mut body).unwrap();
            let body = String::from_utf8(body).unwrap();
            return Answer {
                head,
                body,
                whole: true,
            };
        }
        let mut body = String::new();
        let whole = loop {
            match self.chunk() {
                None => break false,
                Some(chunk) if chunk.is_empty() => break true,
                Some(chunk) => body += &chunk,
            }
        };
        Answer { head, body, whole }
    }
}

/// Asks a model and reads to the end.
pub(crate) fn post(server: &ModelServer, path: &str, body: &Value) -> Answer {
    begin(server, path, body).end()
}

/// Asks a model and leaves the answer to be read.
pub(crate) fn begin(server: &ModelServer, path: &str, body: &Value) -> Exchange {
    let body = body.to_string();
    let length = format!("content-length: {}", body.len());
    let headers = [
        "content-type: application/json",
        "x-api-key: sk-secret",
        &length,
    ];
    Exchange::begin(server, &format!("POST {path}"), &headers, body.as_bytes())
}
