//! The rules of the house: of the sources, of ARCHITECTURE.md and of the security page.

mod architecture_page;
mod rules;
mod security_page;
