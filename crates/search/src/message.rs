//! Questions and answers as they travel: bundles of ciphertexts with a header that says to what they belong.

use crate::error::SearchError;
use crate::plan::{Index, MAX_SEGMENTS};
use crate::threshold::Gap;
use serde::{Deserialize, Serialize};
use sudare_he::ckks::{Ciphertext, Params};
use sudare_rlwe::wire::{Bundle, MAX_APPLICATION_BYTES, Wire};
use sudare_store::layout::hex;

/// A question, or several: one ciphertext each, in compact mode one for each coordinate.
#[derive(Clone, Debug)]
pub struct Query {
    bundle: Bundle<Ciphertext>,
    plan: [u8; 32],
    /// Ciphertexts of each.
    each: usize,
}

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asked {
    /// How many rows match.
    Count,
    /// Which rows match, with their payloads.
    Fetch,
    /// The scores of all rows.
    Scores,
}

impl Asked {
    /// As a person says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Fetch => "fetch",
            Self::Scores => "question for scores",
        }
    }
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    /// Of a question or an answer.
    pub plan: String,
    /// Which table answered, and what it is asked for; none for a question.
    pub answer: Option<AboutAnswer>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AboutAnswer {
    /// The table.
    pub index: String,
    /// What was asked.
    pub asked: Asked,
    /// Number of questions.
    pub queries: usize,
    /// Gaps of the thresholds.
    pub gaps: Vec<Gap>,
    /// Rows of each segment.
    #[serde(with = "runs")]
    pub segments: Vec<u32>,
}

/// Segments as runs of equal ones: rows, and how many segments have as many.
mod runs {
    use super::MAX_SEGMENTS;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(segments: &[u32], to: S) -> Result<S::Ok, S::Error> {
        let runs: Vec<(u32, u32)> = segments.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect();
        runs.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
        let runs = Vec::<(u32, u32)>::deserialize(from)?;
        if runs.iter().map(|run| u64::from(run.1)).sum::<u64>() > MAX_SEGMENTS {
            return Err(D::Error::custom("more segments than a table has"));
        }
        Ok(runs.into_iter().flat_map(|(rows, count)| std::iter::repeat_n(rows, count as usize)).collect())
    }
}

impl AboutAnswer {
    /// Whether an answer's header holds it: asked before any work.
    pub fn fits(&self, index: &Index) -> Result<bool, SearchError> {
        let about = About { plan: hex(&index.hash()), answer: Some(self.clone()) };
        Ok(header(&about)?.len() <= MAX_APPLICATION_BYTES)
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    bundle: Bundle<Ciphertext>,
    about: AboutAnswer,
}

fn header(about: &About) -> Result<Vec<u8>, SearchError> {
    serde_json::to_vec(about).map_err(|_| SearchError::Mixed { what: "a threshold that is no number" })
}

fn about(index: &Index, what: &'static str, bundle: &Bundle<Ciphertext>) -> Result<About, SearchError> {
    let about: About = serde_json::from_slice(bundle.application()).map_err(|_| SearchError::Mixed { what })?;
    if about.plan != hex(&index.hash()) {
        return Err(SearchError::Mixed { what });
    }
    Ok(about)
}

impl Query {
    pub(crate) fn new(index: &Index, ciphertexts: Vec<Ciphertext>) -> Result<Self, SearchError> {
        let about = About { plan: hex(&index.hash()), answer: None };
        let (params, each) = index.question();
        Ok(Self { bundle: bundle(params, &about, ciphertexts)?, plan: index.hash(), each })
    }

    /// Questions in it.
    pub fn len(&self) -> usize {
        self.bundle.ciphertexts().len() / self.each
    }

    /// Whether there are none: no query is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn ciphertexts(&self) -> &[Ciphertext] {
        self.bundle.ciphertexts()
    }

    /// The ciphertexts of each question.
    pub(crate) fn each(&self) -> Vec<&[Ciphertext]> {
        self.bundle.ciphertexts().chunks(self.each).collect()
    }

    /// The name of the plan that it was made by.
    pub(crate) fn plan(&self) -> [u8; 32] {
        self.plan
    }

    /// Its bytes.
    ///
    /// # Errors
    /// [`SearchError::Wire`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, SearchError> {
        Ok(self.bundle.to_bytes()?)
    }

    /// A question of its bytes.
    ///
    /// # Errors
    /// [`SearchError::Wire`] for damaged bytes or other parameters; [`SearchError::Mixed`] for another plan's, or an answer.
    pub fn from_bytes(index: &Index, bytes: &[u8]) -> Result<Self, SearchError> {
        let (params, each) = index.question();
        let bundle = Bundle::from_bytes(params.rlwe(), bytes)?;
        let (what, count) = ("the question", bundle.ciphertexts().len());
        let good = about(index, what, &bundle)?.answer.is_none() && count > 0 && count.is_multiple_of(each);
        if good { Ok(Self { bundle, plan: index.hash(), each }) } else { Err(SearchError::Mixed { what }) }
    }
}

fn bundle(params: &Params, about: &About, ciphertexts: Vec<Ciphertext>) -> Result<Bundle<Ciphertext>, SearchError> {
    let Some(key) = ciphertexts.first().map(Ciphertext::key) else {
        return Err(SearchError::Mixed { what: "an empty message" });
    };
    Ok(Bundle::new(params.rlwe(), key, header(about)?, ciphertexts)?)
}

impl Answer {
    pub(crate) fn new(index: &Index, answer: AboutAnswer, ciphertexts: Vec<Ciphertext>) -> Result<Self, SearchError> {
        let about = About { plan: hex(&index.hash()), answer: Some(answer.clone()) };
        Ok(Self { bundle: bundle(index.params(), &about, ciphertexts)?, about: answer })
    }

    /// What it answers.
    pub fn asked(&self) -> Asked {
        self.about.asked
    }

    /// Questions that it answers.
    pub fn queries(&self) -> usize {
        self.about.queries
    }

    /// Rows of the table.
    pub fn rows(&self) -> u64 {
        self.about.segments.iter().map(|rows| u64::from(*rows)).sum()
    }

    /// Gaps of the thresholds.
    pub fn gaps(&self) -> &[Gap] {
        &self.about.gaps
    }

    pub(crate) fn about(&self) -> &AboutAnswer {
        &self.about
    }

    pub(crate) fn ciphertexts(&self) -> &[Ciphertext] {
        self.bundle.ciphertexts()
    }

    /// Its bytes.
    ///
    /// # Errors
    /// [`SearchError::Wire`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, SearchError> {
        Ok(self.bundle.to_bytes()?)
    }

    /// An answer of its bytes.
    ///
    /// # Errors
    /// [`SearchError::Wire`] for damaged bytes or other parameters; [`SearchError::Mixed`] for another plan's, or a question.
    pub fn from_bytes(index: &Index, bytes: &[u8]) -> Result<Self, SearchError> {
        let bundle = Bundle::from_bytes(index.params().rlwe(), bytes)?;
        let what = "the answer";
        let Some(answer) = about(index, what, &bundle)?.answer else { return Err(SearchError::Mixed { what }) };
        let payload = index.payloads().map_or(0, |p| 2 * p.ciphertexts());
        let each = match answer.asked {
            Asked::Count => answer.gaps.len(),
            Asked::Fetch => payload,
            Asked::Scores => answer.segments.len(),
        };
        let most = index.segment_rows() as u32;
        let sound = answer.queries > 0
            && each > 0
            && answer.queries.checked_mul(each) == Some(bundle.ciphertexts().len())
            && answer.segments.iter().all(|rows| (1..=most).contains(rows));
        if sound { Ok(Self { bundle, about: answer }) } else { Err(SearchError::Mixed { what }) }
    }
}
