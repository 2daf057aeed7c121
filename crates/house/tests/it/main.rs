//! The rules of the house: of the sources, of ARCHITECTURE.md, of the security page, and of words.

mod architecture_page;
mod documents;
mod rules;
mod security_page;
