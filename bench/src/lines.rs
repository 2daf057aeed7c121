//! Lines of suites that rerun a table: JSON or text, kept for the page, wrong answers counted.

use crate::Outcome;
use crate::record::replace;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// One cell of a table.
pub trait Line: Serialize {
    /// The head of the text table.
    const HEAD: &'static str;
    /// The cell as a row of it.
    fn row(&self) -> String;
    /// What was wrong with the answer; `None` for a right one.
    fn wrong(&self) -> Option<&str>;
}

/// Prints lines as they come.
#[derive(Debug)]
pub struct Lines {
    json: bool,
    head: &'static str,
    wrong: usize,
    all: usize,
}

impl Lines {
    /// As JSON objects or as a table.
    pub fn new(json: bool) -> Self {
        Self { json, head: "", wrong: 0, all: 0 }
    }

    /// Prints a line.
    pub fn put<T: Line>(&mut self, line: &T) -> Outcome<()> {
        self.all += 1;
        self.wrong += usize::from(line.wrong().is_some());
        if self.json {
            println!("{}", serde_json::to_string(line)?);
            return Ok(());
        }
        if self.head != T::HEAD {
            self.head = T::HEAD;
            println!("{}", T::HEAD);
        }
        println!("{}", line.row());
        Ok(())
    }

    /// An error if any answer was wrong.
    pub fn finish(&self) -> Outcome<()> {
        match self.wrong {
            0 => Ok(()),
            wrong => Err(format!("{wrong} of {} answers were wrong", self.all).into()),
        }
    }
}

/// Writes lines as one JSON object each; the file appears whole or not at all.
pub fn store<T: Serialize>(path: &Path, lines: &[T]) -> Outcome<()> {
    let text = lines.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    replace(path, &(text.join("\n") + "\n"))
}

/// Reads lines that [`store`] wrote; none where there is no file.
pub fn load<T: DeserializeOwned>(path: &Path) -> Outcome<Vec<T>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    text.lines().filter(|line| !line.is_empty()).map(|line| Ok(serde_json::from_str(line)?)).collect()
}
