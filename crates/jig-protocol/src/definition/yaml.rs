//! From text to a tree that knows where everything stands.
//!
//! The only module that touches the YAML library. It keeps every entry of a map,
//! repeated keys included, and leaves the meaning of scalars to the decoder; it
//! refuses what no definition needs (tags, merge keys, several documents) and
//! what only an attack needs (alias bombs, deep nesting, huge files).

use std::collections::HashMap;
use std::rc::Rc;

use serde_yaml::granit_parser::{
    Event, Marker, Options, Parser, ScalarStyle, ScanError, Span as YamlSpan,
};

use super::code::Code;
use super::diagnostic::{Diagnostic, Span, clamp, quoted};
use crate::limits::{DEFINITION_BYTES, DEFINITION_DEPTH, DEFINITION_NODES};

/// A value with its place. Aliases share the node they repeat.
#[derive(Debug, PartialEq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The value; of a list or map, its first line.
    pub(super) span: Span,
}

/// What a value is, before anyone asked for a type.
#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    Scalar(Scalar),
    List(Vec<Rc<Node>>),
    Map(Vec<Entry>),
}

/// A scalar as written.
#[derive(Debug, PartialEq)]
pub(super) struct Scalar {
    pub(super) text: String,
    /// Written without quotes, so that it may be a number, a boolean or null.
    pub(super) plain: bool,
    /// The bytes it takes in the source, all lines of it.
    pub(super) range: (usize, usize),
}

/// One entry of a map; keys may repeat.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) value: Rc<Node>,
}

/// Reads the one document of `text`. Problems are added to `problems`; `None`
/// when there is no tree to decode.
pub(super) fn load(text: &str, problems: &mut Vec<Diagnostic>) -> Option<Rc<Node>> {
    if text.len() > DEFINITION_BYTES {
        problems.push(Diagnostic::new(
            Code::TooLarge,
            Span::in_text(text, 0, 0),
            "",
            format!("the file has more than {DEFINITION_BYTES} bytes"),
        ));
        return None;
    }
    let mut builder = Builder::new(text, problems);
    match builder.run() {
        Ok(()) => builder.root,
        Err(problem) => {
            builder.problems.push(*problem);
            None
        }
    }
}

/// What a finished node costs whoever repeats it.
#[derive(Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    bytes: usize,
    height: usize,
}

struct Frame {
    anchor: usize,
    start: Marker,
    items: Items,
    weight: Weight,
}

enum Items {
    List(Vec<Rc<Node>>),
    Map {
        entries: Vec<Entry>,
        key: Option<(String, Span)>,
    },
}

struct Builder<'t, 'p> {
    text: &'t str,
    problems: &'p mut Vec<Diagnostic>,
    root: Option<Rc<Node>>,
    stack: Vec<Frame>,
    anchors: HashMap<usize, (Rc<Node>, Weight)>,
    total: Weight,
    aliases: bool,
    documents: usize,
}

type Stop = Box<Diagnostic>;

/// The merge key of old YAML.
const MERGE: &str = "<<";

impl<'t, 'p> Builder<'t, 'p> {
    fn new(text: &'t str, problems: &'p mut Vec<Diagnostic>) -> Self {
        Self {
            text,
            problems,
            root: None,
            stack: Vec::new(),
            anchors: HashMap::new(),
            total: Weight::default(),
            aliases: false,
            documents: 0,
        }
    }

    fn run(&mut self) -> Result<(), Stop> {
        let mut options = Options::default();
        options.emit_comments = false;
        for next in Parser::new_from_str_with_options(self.text, options) {
            let (event, span) = next.map_err(|error| self.syntax(&error))?;
            self.event(event, span)?;
        }
        if self.root.is_none() {
            return Err(Box::new(Diagnostic::new(
                Code::Documents,
                Span::in_text(self.text, 0, 0),
                "",
                "the file holds no definition",
            )));
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'t>, span: YamlSpan) -> Result<(), Stop> {
        if let Some(tag) = event.tag() {
            let at = span.tag_span().unwrap_or(span);
            let what = quoted(&tag.original());
            self.complain(Code::Tag, &at, format!("the tag {what} is not supported"))
                .help("remove it; every value's type follows from its key");
        }
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(Box::new(Diagnostic::new(
                        Code::Documents,
                        self.span(&span),
                        "",
                        "a second document starts here; a definition file holds one",
                    )));
                }
            }
            Event::Scalar(text, style, anchor, _) => {
                let plain = matches!(style, ScalarStyle::Plain);
                self.scalar(text.into_owned(), plain, anchor, &span)?;
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(anchor, &span, Items::List(Vec::new()))?;
            }
            Event::MappingStart(_, anchor, _) => {
                let items = Items::Map {
                    entries: Vec::new(),
                    key: None,
                };
                self.open(anchor, &span, items)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(&span)?,
            Event::Alias(id) => self.alias(id, &span)?,
            _ => {}
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: String,
        plain: bool,
        anchor: usize,
        span: &YamlSpan,
    ) -> Result<(), Stop> {
        let weight = Weight {
            nodes: 1,
            bytes: text.len(),
            height: 0,
        };
        self.charge(weight, span)?;
        let place = self.first_line(&span.start, &span.end);
        if self.wants_key() {
            return self.key(text, plain, place);
        }
        let range = (self.byte(&span.start), self.byte(&span.end));
        let node = Rc::new(Node {
            kind: Kind::Scalar(Scalar { text, plain, range }),
            span: place,
        });
        self.finish(anchor, node, weight);
        Ok(())
    }

    fn key(&mut self, text: String, plain: bool, place: Span) -> Result<(), Stop> {
        if plain && text == MERGE {
            let problem = Diagnostic::new(Code::Key, place, "", "merge keys are not supported");
            self.problems.push(problem);
            if let Some(last) = self.problems.last_mut() {
                last.help("write the keys out; an alias may still repeat a whole value");
            }
            // Its value is read and dropped, so that it is not reported twice.
        }
        if let Some(Frame {
            items: Items::Map { key, .. },
            ..
        }) = self.stack.last_mut()
        {
            *key = Some((text, place));
        }
        Ok(())
    }

    fn wants_key(&self) -> bool {
        matches!(
            self.stack.last(),
            Some(Frame {
                items: Items::Map { key: None, .. },
                ..
            })
        )
    }

    fn open(&mut self, anchor: usize, span: &YamlSpan, items: Items) -> Result<(), Stop> {
        let weight = Weight {
            nodes: 1,
            ..Weight::default()
        };
        self.charge(weight, span)?;
        self.refuse_key(span)?;
        if self.stack.len() >= DEFINITION_DEPTH as usize {
            return Err(self.too_deep(span));
        }
        self.stack.push(Frame {
            anchor,
            start: span.start,
            items,
            weight,
        });
        Ok(())
    }

    fn close(&mut self, span: &YamlSpan) -> Result<(), Stop> {
        let Some(frame) = self.stack.pop() else {
            return Ok(());
        };
        let mut weight = frame.weight;
        weight.height += 1;
        let kind = match frame.items {
            Items::List(items) => Kind::List(items),
            Items::Map { entries, .. } => Kind::Map(entries),
        };
        let node = Rc::new(Node {
            kind,
            span: self.first_line(&frame.start, &span.end),
        });
        self.finish(frame.anchor, node, weight);
        Ok(())
    }

    fn alias(&mut self, id: usize, span: &YamlSpan) -> Result<(), Stop> {
        self.aliases = true;
        self.refuse_key(span)?;
        let Some((node, weight)) = self.anchors.get(&id).cloned() else {
            return Err(Box::new(Diagnostic::new(
                Code::Syntax,
                self.span(span),
                "",
                "the alias repeats a value that it is part of",
            )));
        };
        self.charge(weight, span)?;
        if self.stack.len() + weight.height > DEFINITION_DEPTH as usize {
            return Err(self.too_deep(span));
        }
        self.finish(0, node, weight);
        Ok(())
    }

    /// Puts a finished node where it belongs.
    fn finish(&mut self, anchor: usize, node: Rc<Node>, weight: Weight) {
        if anchor != 0 {
            self.anchors.insert(anchor, (Rc::clone(&node), weight));
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node);
            return;
        };
        frame.weight.nodes = frame.weight.nodes.saturating_add(weight.nodes);
        frame.weight.bytes = frame.weight.bytes.saturating_add(weight.bytes);
        frame.weight.height = frame.weight.height.max(weight.height);
        match &mut frame.items {
            Items::List(items) => items.push(node),
            Items::Map { entries, key } => {
                if let Some((key, key_span)) = key.take()
                    && key != MERGE
                {
                    entries.push(Entry {
                        key,
                        key_span,
                        value: node,
                    });
                }
            }
        }
    }

    fn charge(&mut self, weight: Weight, span: &YamlSpan) -> Result<(), Stop> {
        self.total.nodes = self.total.nodes.saturating_add(weight.nodes);
        self.total.bytes = self.total.bytes.saturating_add(weight.bytes);
        let what = if self.total.nodes > DEFINITION_NODES as usize {
            format!("more than {DEFINITION_NODES} values")
        } else if self.total.bytes > DEFINITION_BYTES {
            format!("more than {DEFINITION_BYTES} bytes of text")
        } else {
            return Ok(());
        };
        let when = if self.aliases {
            " once its aliases are expanded"
        } else {
            ""
        };
        let mut problem = Diagnostic::new(
            Code::TooManyNodes,
            self.span(span),
            "",
            format!("the file holds {what}{when}"),
        );
        if self.aliases {
            problem
                .help("an alias repeats everything below its anchor; aliases of aliases multiply");
        }
        Err(Box::new(problem))
    }

    /// A list, a map or an alias cannot be a key.
    fn refuse_key(&self, span: &YamlSpan) -> Result<(), Stop> {
        if self.wants_key() {
            return Err(Box::new(Diagnostic::new(
                Code::Key,
                self.span(span),
                "",
                "a key must be plain text",
            )));
        }
        Ok(())
    }

    fn too_deep(&self, span: &YamlSpan) -> Stop {
        Box::new(Diagnostic::new(
            Code::TooDeep,
            self.span(span),
            "",
            format!("lists and maps are nested more than {DEFINITION_DEPTH} deep"),
        ))
    }

    fn syntax(&self, error: &ScanError) -> Stop {
        let at = self.byte(error.marker());
        let message = match error.info() {
            info if info.is_empty() => "the text is not YAML".to_owned(),
            info => format!("the text is not YAML: {info}"),
        };
        let mut problem =
            Diagnostic::new(Code::Syntax, Span::in_text(self.text, at, at), "", message);
        if let Some(help) = syntax_help(&error.info()) {
            problem.help(help);
        }
        Box::new(problem)
    }

    fn complain(&mut self, code: Code, span: &YamlSpan, message: String) -> &mut Diagnostic {
        let at = self.first_line(&span.start, &span.end);
        super::cursor::push_capped(self.problems, Diagnostic::new(code, at, "", message))
    }

    fn span(&self, span: &YamlSpan) -> Span {
        self.first_line(&span.start, &span.end)
    }

    fn byte(&self, marker: &Marker) -> usize {
        marker.byte_offset().unwrap_or(0).min(self.text.len())
    }

    /// From `start` to `end`, or to the end of the first line.
    fn first_line(&self, start: &Marker, end: &Marker) -> Span {
        let (from, to) = (self.byte(start), self.byte(end));
        let line = clamp(start.line());
        let column = clamp(start.col() + 1);
        let part = self.text.get(from..to.max(from)).unwrap_or("");
        let shown = part.lines().next().unwrap_or("").trim_end();
        Span {
            start: from,
            end: from + shown.len(),
            line,
            column,
            end_line: line,
            end_column: column.saturating_add(clamp(shown.chars().count())),
        }
    }
}

/// What to do about the two mistakes in writing YAML that are made most.
fn syntax_help(info: &str) -> Option<&'static str> {
    if info.contains("tab") {
        return Some("indent with spaces; YAML takes no tabs");
    }
    let colon = info.contains("mapping values are not allowed");
    colon.then_some("a text that holds `: ` must be quoted; or this line is indented too far")
}
