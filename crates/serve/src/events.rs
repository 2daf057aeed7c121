//! Events of the operator's logs, as lines of text or of JSON.
//!
//! No event has a token, an element of a value or a figure of a query. Digests of objects, which are names, are in events of
//! the audit alone.

use humantime::format_rfc3339_millis;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

/// Where events go. A request whose event the audit log cannot take is refused.
pub(crate) type Log = Arc<dyn Fn(&Event) -> io::Result<()> + Send + Sync>;

/// Something that happened, at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    time: SystemTime,
    name: &'static str,
    audit: bool,
    fields: Vec<(&'static str, Value)>,
}

impl Event {
    fn at_once(name: &'static str, audit: bool) -> Self {
        Self { time: SystemTime::now(), name, audit, fields: Vec::new() }
    }

    /// For the log: a request, the end of a job, a word of the server's.
    pub fn log(name: &'static str) -> Self {
        Self::at_once(name, false)
    }

    /// For the audit: who did what to which objects.
    pub fn audit(name: &'static str) -> Self {
        Self::at_once(name, true)
    }

    /// Words of the server's own.
    pub fn note(words: impl Into<String>) -> Self {
        Self::log("server").with("words", words.into())
    }

    /// The same with a field.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// Whether it is one of the audit.
    pub fn is_audit(&self) -> bool {
        self.audit
    }

    /// Seconds to the millisecond.
    #[must_use]
    pub(crate) fn lasting(self, seconds: f64) -> Self {
        self.with("seconds", (seconds * 1e3).round() / 1e3)
    }
}

/// One object, the fields in their order.
impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len() + 2))?;
        map.serialize_entry("time", &format_rfc3339_millis(self.time).to_string())?;
        map.serialize_entry("event", self.name)?;
        self.fields.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

/// A line for people and for `grep`: the moment, what, and NAME=VALUE, in quotes where it has a space.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", format_rfc3339_millis(self.time), self.name)?;
        let plain = |text: &&String| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && b != b'"');
        for (name, value) in &self.fields {
            match value.as_str().map(str::to_owned).as_ref().filter(plain) {
                Some(text) => write!(f, " {name}={text}")?,
                None => write!(f, " {name}={value}")?,
            }
        }
        Ok(())
    }
}

/// Who asks, and from where.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub tenant: Arc<str>,
    /// The token's name.
    pub token: Arc<str>,
    pub address: IpAddr,
}

impl Caller {
    /// An event of the audit with the caller in it.
    pub fn audit(&self, name: &'static str) -> Event {
        let event = Event::audit(name).with("address", self.address.to_string());
        event.with("tenant", &*self.tenant).with("token", &*self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_text_and_of_json() {
        let event =
            Event::log("request").with("tenant", "one").with("bytes", 7).with("words", "a \"b\"\nc").lasting(0.0125);
        let text = event.to_string();
        let (time, rest) = text.split_once(' ').unwrap();
        assert!(humantime::parse_rfc3339(time).is_ok(), "{time}");
        assert_eq!(rest, r#"request tenant=one bytes=7 words="a \"b\"\nc" seconds=0.013"#);
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(
            json,
            format!(
                r#"{{"time":"{time}","event":"request","tenant":"one","bytes":7,"words":"a \"b\"\nc","seconds":0.013}}"#
            )
        );
    }
}
