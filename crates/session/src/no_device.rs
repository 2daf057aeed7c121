//! In place of `device.rs` where nothing computes on a device: there are no values on one and no servers of one.

use crate::encrypted::Encrypted;
use std::sync::Arc;
use sudare_he::ckks::Ciphertext;
use sudare_methods::MatrixError;
use sudare_plan::Plan;
use sudare_rlwe::wire::Bundle;
use sudare_rlwe::{Counters, KeyId};

pub(crate) enum OnDevice {}

impl OnDevice {
    pub fn on_host(&self) -> Result<&Arc<Bundle<Ciphertext>>, MatrixError> {
        match *self {}
    }

    pub fn count(&self) -> usize {
        match *self {}
    }

    pub fn level(&self) -> Option<usize> {
        match *self {}
    }

    pub fn bytes(&self) -> usize {
        match *self {}
    }

    pub fn device_name(&self) -> String {
        match *self {}
    }
}

pub(crate) enum OfDevice {}

impl OfDevice {
    pub fn bring(&self, _: &Plan, _: KeyId, _: &Encrypted) -> Result<Encrypted, MatrixError> {
        match *self {}
    }

    pub fn value(
        &self,
        _: &Plan,
        _: (usize, KeyId),
        _: &[&Encrypted],
        _: Option<f64>,
    ) -> Result<Encrypted, MatrixError> {
        match *self {}
    }

    pub fn counters(&self) -> Counters {
        match *self {}
    }
}
