//! Plans: what is chosen, and figures that stay.

mod golden;
mod planning;
mod sharing;
