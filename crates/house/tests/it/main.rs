//! The rules of the house: of the sources, and of the security page.

mod rules;
mod security_page;
