//! Rust source as the text rules see it: tokens without comments, with literals
//! kept apart, grouped imports spelled out, and test code marked.
//!
//! A word in a comment or in a string is talk, not use: the rules that look for
//! words never see it. This is no parser; it is exact about what hides words
//! (strings of every kind, nested comments, lifetimes) and knows of the rest only
//! what it takes to find the end of an item.

mod file;
mod lexer;
mod test_code;
mod uses;

pub use file::{Source, read_all};
pub use lexer::{Kind, Token, lex};
