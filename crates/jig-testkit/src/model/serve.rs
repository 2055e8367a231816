//! One HTTP request: read, routed, answered.

use std::convert::Infallible;
use std::pin::Pin;

use hyper::body::{Body as _, Incoming};
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue,
};
use hyper::http::response::Builder;
use hyper::{Method, Response};
use serde_json::{Value, json};

use super::body::{Piece, Pieces};
use super::request::{Request, Vendor};
use super::state::{Answer, State, serial};
use super::step::{Block, Cut, HttpError, Kind, Step, Usage};
use super::{anthropic, openai};

pub(super) async fn answer(
    state: State,
    request: hyper::Request<Incoming>,
) -> Result<Response<Pieces>, Infallible> {
    let (parts, body) = request.into_parts();
    let refusal = match read(&parts.headers, body).await {
        Ok(bytes) if bytes.is_empty() => Ok(None),
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| (400, format!("the body is not JSON: {error}"))),
        Err(refusal) => Err(refusal),
    };
    let body = refusal.as_ref().ok().cloned().flatten();
    let request = Request::received(&parts, body);
    if let Err((status, why)) = refusal {
        state.fault(format!("{} {}: {why}", request.method, request.path));
        let at = state.enter(request);
        return Ok(of_no_model(
            &state,
            at,
            status,
            &json!({"error": {"message": why}}),
        ));
    }
    if request.vendor.is_some() {
        return Ok(of_model(state, request).await);
    }
    let path = parts.uri.path().to_owned();
    let at = state.enter(request);
    let (status, body) = match parts.method {
        Method::HEAD => (200, Value::Null),
        Method::GET if path.ends_with("/models") => (200, models()),
        Method::POST if path.ends_with("/count_tokens") => (200, json!({"input_tokens": 100})),
        _ => (
            404,
            json!({"error": {"type": "not_found_error", "message": "no such path"}}),
        ),
    };
    Ok(of_no_model(&state, at, status, &body))
}

/// All bytes of the body, or the status and reason of its refusal.
async fn read(headers: &hyper::HeaderMap, mut body: Incoming) -> Result<Vec<u8>, (u16, String)> {
    let encoding = headers.get(CONTENT_ENCODING);
    if let Some(encoding) = encoding.filter(|it| *it != HeaderValue::from_static("identity")) {
        return Err((415, format!("the body is encoded as {encoding:?}")));
    }
    let mut bytes = Vec::new();
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        match frame {
            None => return Ok(bytes),
            Some(Ok(frame)) => bytes.extend(frame.into_data().unwrap_or_default()),
            Some(Err(error)) => return Err((400, format!("the body broke off: {error}"))),
        }
    }
}

/// In the form of both vendors.
fn models() -> Value {
    json!({
        "object": "list",
        "data": [{
            "id": "loopback", "type": "model", "object": "model", "display_name": "Loopback",
            "created": 0, "created_at": "2026-01-01T00:00:00Z", "owned_by": "jig",
        }],
        "models": [],
        "has_more": false,
    })
}

fn of_no_model(state: &State, at: usize, status: u16, body: &Value) -> Response<Pieces> {
    let data = (!body.is_null()).then(|| Piece::data(body.to_string()));
    state.answered(at, status);
    let builder = Response::builder().status(status);
    sent(
        state,
        builder.header(CONTENT_TYPE, "application/json"),
        Pieces::new(data, || ()),
    )
}

async fn of_model(state: State, request: Request) -> Response<Pieces> {
    let vendor = request.vendor.unwrap_or(Vendor::Anthropic);
    let field = |name: &str| {
        request
            .body
            .as_ref()
            .map_or(&Value::Null, |body| &body[name])
    };
    let model = field("model").clone();
    let streams = field("stream") == &Value::Bool(true);
    let (at, answer) = state.route(request);
    let step = match answer {
        Answer::Step(step) => *step,
        Answer::Free => Step::text("ok").usage(Usage::default()),
        // Nothing that is asked again gets better by it.
        Answer::Nothing(why) => Step::error(500)
            .message(format!("the script of this test is at its end: {why}"))
            .header("x-should-retry", "false"),
    };
    if let Some(gate) = step.after.clone() {
        gate.passed().await;
    }
    let asked = Asked {
        state,
        at,
        vendor,
        model,
        streams,
    };
    match &step.kind {
        Kind::Error(error) => asked.error(error),
        Kind::Failed { code, message } => asked.failed(&step, code, message),
        Kind::Answer(blocks) => asked.answer(&step, blocks),
        Kind::FromRequest(_) => asked.impossible("the step was not computed"),
    }
}

/// A request of a model and how it wants its answer.
struct Asked {
    state: State,
    at: usize,
    vendor: Vendor,
    model: Value,
    streams: bool,
}

impl Asked {
    fn error(&self, error: &HttpError) -> Response<Pieces> {
        let mut builder = self.head(error.status, "application/json");
        for (name, value) in &error.headers {
            let parsed = (HeaderName::try_from(name), HeaderValue::try_from(value));
            let (Ok(name), Ok(value)) = parsed else {
                self.state.fault(format!("{name}: {value} is no header"));
                continue;
            };
            builder = builder.header(name, value);
        }
        let id = format!("req_{:024}", serial());
        let body = match (&error.body, self.vendor) {
            (Some(body), _) => body.clone(),
            (None, Vendor::Anthropic) => anthropic::error(error, &id).to_string(),
            (None, Vendor::OpenAi) => openai::error(error).to_string(),
        };
        sent(
            &self.state,
            builder,
            Pieces::new([Piece::data(body)], || ()),
        )
    }

    fn failed(&self, step: &Step, code: &str, message: &str) -> Response<Pieces> {
        if !self.streams {
            let error = HttpError {
                status: 500,
                message: Some(message.to_owned()),
                kind: None,
                code: Some(code.to_owned()),
                headers: Vec::new(),
                body: None,
            };
            return self.error(&error);
        }
        let pieces = match self.vendor {
            Vendor::Anthropic => anthropic::failed(&self.model, step.usage, code, message),
            Vendor::OpenAi => openai::failed(&self.model, code, message),
        };
        let head = self
            .head(200, "text/event-stream")
            .header(CONNECTION, "close");
        sent(&self.state, head, Pieces::new(staged(step, pieces), || ()))
    }

    fn answer(&self, step: &Step, blocks: &[Block]) -> Response<Pieces> {
        let pieces = match (self.vendor, self.streams) {
            (Vendor::Anthropic, true) => anthropic::stream(&self.model, step, blocks),
            (Vendor::OpenAi, true) => Ok(openai::stream(&self.model, step, blocks)),
            (Vendor::Anthropic, false) => anthropic::plain(&self.model, step, blocks)
                .map(|it| vec![Piece::data(it.to_string())]),
            (Vendor::OpenAi, false) => {
                let response = openai::plain(&self.model, step, blocks);
                Ok(vec![Piece::data(response.to_string())])
            }
        };
        let pieces = match pieces {
            Ok(pieces) => staged(step, pieces),
            Err(why) => return self.impossible(&why),
        };
        let head = if self.streams {
            let head = self.head(200, "text/event-stream");
            head.header(CACHE_CONTROL, "no-cache")
                .header(CONNECTION, "close")
        } else {
            self.head(200, "application/json")
        };
        let (state, at, usage) = (self.state.clone(), self.at, step.usage);
        let pieces = Pieces::new(pieces, move || state.served(at, usage));
        sent(&self.state, head, pieces)
    }

    /// The script asks for what this interface has not.
    fn impossible(&self, why: &str) -> Response<Pieces> {
        self.state.fault(why.to_owned());
        match &Step::error(500)
            .message(why)
            .header("x-should-retry", "false")
            .kind
        {
            Kind::Error(error) => self.error(error),
            _ => sent(
                &self.state,
                self.head(500, "text/plain"),
                Pieces::new([], || ()),
            ),
        }
    }

    fn head(&self, status: u16, kind: &'static str) -> Builder {
        self.state.answered(self.at, status);
        let name = match self.vendor {
            Vendor::Anthropic => "request-id",
            Vendor::OpenAi => "x-request-id",
        };
        let builder = Response::builder().status(status);
        builder
            .header(CONTENT_TYPE, kind)
            .header(name, format!("req_{:024}", serial()))
    }
}

/// The pieces with the pause after the first and the break that the step wants.
fn staged(step: &Step, mut pieces: Vec<Piece>) -> Vec<Piece> {
    let cut = match step.cut {
        Some(Cut::Middle) => Some(pieces.len() / 2),
        Some(Cut::After(events)) => Some(events.min(pieces.len())),
        None => None,
    };
    if let Some(at) = cut {
        pieces.truncate(at);
        pieces.push(Piece::Cut);
    }
    if let Some(hold) = &step.hold {
        // A plain answer is one piece: it waits as a whole.
        let at = usize::from(pieces.len() > 1);
        pieces.insert(at, Piece::Hold(hold.clone()));
    }
    pieces
}

fn sent(state: &State, builder: Builder, pieces: Pieces) -> Response<Pieces> {
    builder.body(pieces).unwrap_or_else(|error| {
        state.fault(format!("an answer cannot be built: {error}"));
        Response::new(Pieces::new([], || ()))
    })
}
