pub use super::super::portable::{forward, forward_partial, inverse, inverse_partial};
