//! Matrices in files: NumPy's .npy, and tables of text in .csv and .tsv; any of them packed by gzip.

use crate::args::Csv;
use crate::csv_file::{self, Names};
use crate::error::{CliError, InFile};
use crate::files::{self, Access, Output, Whole};
use crate::{gzip, npy};
use std::path::Path;
use sudare_expr::Matrix;
use sudare_ring::ErrorKind;

/// Most bytes of a matrix file.
pub const MAX_BYTES: u64 = 4 << 30;
/// Numbers and the axes they came with.
#[derive(Debug)]
pub struct Array<T> {
    pub shape: Vec<usize>,
    /// Row by row.
    pub data: Vec<T>,
}

/// The least double that integers beside it may have been rounded to.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// What numbers of a file are taken for: doubles, or integers with all their digits.
pub trait Element: Copy {
    /// What something else is called.
    const WRONG: &'static str;

    fn of_real(x: f64) -> Option<Self>;
    fn of_whole(x: i128) -> Option<Self>;
    fn parse(text: &str) -> Option<Self>;
}

impl Element for f64 {
    const WRONG: &'static str = "not a number";

    fn of_real(x: f64) -> Option<Self> {
        Some(x)
    }

    fn of_whole(x: i128) -> Option<Self> {
        Some(x as f64)
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Element for i128 {
    const WRONG: &'static str = "not an integer, or a rounded one over 2^53, and integers are needed here";

    fn of_real(x: f64) -> Option<Self> {
        (x.fract() == 0.0 && x.abs() < MAX_WHOLE).then_some(x as Self)
    }

    fn of_whole(x: i128) -> Option<Self> {
        Some(x)
    }

    fn parse(text: &str) -> Option<Self> {
        whole(text)
    }
}

/// An integer written in decimals, perhaps with a point and a power of ten, with all its digits.
fn whole(text: &str) -> Option<i128> {
    let (digits, power) = match text.split_once(['e', 'E']) {
        Some((digits, power)) => (digits, power.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (before, after) = digits.split_once('.').unwrap_or((digits, ""));
    let after = after.trim_end_matches('0');
    if !after.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: i128 = format!("{before}{after}").parse().ok()?;
    let power = i64::from(power) - after.len() as i64;
    let ten = |power: i64| 10i128.checked_pow(u32::try_from(power).ok()?);
    match power {
        _ if number == 0 => Some(0),
        0.. => number.checked_mul(ten(power)?),
        _ => ten(-power).filter(|ten| number % ten == 0).map(|ten| number / ten),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Npy,
    Csv,
}

pub fn bad(message: impl Into<String>) -> CliError {
    CliError::new(ErrorKind::Input, message)
}

/// How a name ends, without that of a packed file.
fn ending(path: &Path) -> String {
    let of = |path: &Path| path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if is_packed(path) { of(Path::new(path.file_stem().unwrap_or_default())) } else { of(path) }
}

fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"))
}

/// By the name; standard output gets text.
fn format(path: &Path) -> Result<Format, CliError> {
    if files::is_standard(path) {
        return Ok(Format::Csv);
    }
    match ending(path).as_str() {
        "npy" => Ok(Format::Npy),
        "csv" | "tsv" => Ok(Format::Csv),
        other => {
            let remedy = match other {
                "parquet" => "; write it as .csv first, with pandas.read_parquet(FILE).to_csv(FILE, index=False)",
                "xlsx" | "xls" | "ods" => "; save the sheet as .csv first",
                _ => "",
            };
            let words = format!("a matrix file ends in .npy, .csv or .tsv, and .gz after it if it is packed{remedy}");
            Err(CliError::new(ErrorKind::Usage, words).in_file(path))
        }
    }
}

/// How a table of text with this name is written: a .tsv file has tabs, unless something else is said.
fn named(path: &Path, options: &Csv) -> Csv {
    let tabs = (ending(path) == "tsv").then_some(b'\t');
    Csv { separator: options.separator.or(tabs), ..options.clone() }
}

/// Refuses a name that no matrix can be written to, before any work is done.
pub fn check_output(path: &Path) -> Result<(), CliError> {
    if is_packed(path) {
        let words = "a matrix is written as .npy, .csv or .tsv; pack it with gzip afterwards";
        return Err(CliError::new(ErrorKind::Usage, words).in_file(path));
    }
    format(path).map(|_| ())
}

/// Reads what a file or standard input holds, .npy or .csv, packed or not.
pub fn array<T: Element>(path: &Path, options: &Csv) -> Result<(Array<T>, Names), CliError> {
    // A name that is none of ours is refused before a long file is read.
    let named_format = if files::is_standard(path) { None } else { Some(format(path)?) };
    let bytes = unpacked(path)?;
    parse(&bytes, named_format.unwrap_or_else(|| sniffed(&bytes)), &named(path, options)).in_file(path)
}

fn unpacked(path: &Path) -> Result<Vec<u8>, CliError> {
    gzip::unpacked(files::read(path, MAX_BYTES)?, MAX_BYTES).in_file(path)
}

/// What the bytes look like.
pub fn sniffed(bytes: &[u8]) -> Format {
    if bytes.starts_with(npy::MAGIC) { Format::Npy } else { Format::Csv }
}

/// Reads an array of a format.
pub fn parse<T: Element>(bytes: &[u8], format: Format, options: &Csv) -> Result<(Array<T>, Names), CliError> {
    match format {
        Format::Npy => Ok((npy::read(bytes)?, Names::default())),
        Format::Csv => csv_file::read(bytes, options),
    }
}

/// Reads bytes as both formats and as both kinds of numbers; what is read is written, and read again as the same. Whether
/// anything was read.
#[doc(hidden)]
pub fn read_for_fuzzing(bytes: &[u8]) -> bool {
    let options = [(None, false, false), (Some(b','), false, true), (Some(b';'), true, false)];
    let csv = |(separator, decimal_comma, index)| Csv { separator, decimal_comma, index };
    let mut read = false;
    for options in options.map(csv) {
        for format in [Format::Npy, Format::Csv] {
            read |= read_as::<f64>(bytes, format, &options) | read_as::<i128>(bytes, format, &options);
        }
    }
    read
}

fn read_as<T: Element + ToString>(bytes: &[u8], format: Format, options: &Csv) -> bool {
    let Ok((array, names)) = parse::<T>(bytes, format, options) else { return false };
    let texts: Vec<String> = array.data.iter().map(T::to_string).collect();
    assert!(!array.shape.is_empty() && array.shape.iter().product::<usize>() == texts.len() && !texts.is_empty());
    if format == Format::Csv {
        let mut out = Vec::new();
        let rows = texts.chunks(array.shape[1]).map(<[String]>::to_vec);
        csv_file::write(&mut out, &names, rows, options).expect("what was read can be written");
        // What is written has commas, whatever was read.
        let separator = options.separator.or(Some(b','));
        let (again, named) = csv_file::read::<T>(&out, &Csv { separator, ..options.clone() })
            .unwrap_or_else(|e| panic!("{e}: {:?}", String::from_utf8_lossy(&out)));
        assert_eq!((again.shape, named), (array.shape, names), "{:?}", String::from_utf8_lossy(&out));
        assert!(again.data.iter().map(T::to_string).eq(texts));
    }
    true
}

/// The names in a .csv file, with none of its numbers, if it has any.
pub fn names(path: &Path, options: &Csv) -> Result<Names, CliError> {
    match format(path)? {
        Format::Csv => csv_file::names(&unpacked(path)?, &named(path, options)).in_file(path),
        Format::Npy => Err(CliError::new(ErrorKind::Usage, "a .npy file has no names; name a .csv file").in_file(path)),
    }
}

/// Reads `batch` matrices of a planned shape. One axis alone is taken for a row or a column,
/// whichever the plan has; with a batch the members are the first axis.
pub fn read(path: &Path, batch: usize, shape: (usize, usize), options: &Csv) -> Result<Vec<Matrix>, CliError> {
    let (rows, cols) = shape;
    let data = planned::<f64>(path, batch, shape, options)?;
    let each = data.chunks_exact(rows * cols).map(|m| Matrix::new(rows, cols, m.to_vec()));
    each.collect::<Result<Vec<_>, _>>().in_file(path)
}

/// Reads the `batch` matrices of an exact plan.
pub fn integers(
    path: &Path,
    batch: usize,
    shape: (usize, usize),
    options: &Csv,
) -> Result<Vec<Matrix<i128>>, CliError> {
    let (rows, cols) = shape;
    let data = planned::<i128>(path, batch, shape, options)?;
    let each = data.chunks_exact(rows * cols).map(|m| Matrix::<i128>::new(rows, cols, m.to_vec()));
    each.collect::<Result<Vec<_>, _>>().in_file(path)
}

/// The numbers of a file of a planned shape.
fn planned<T: Element>(
    path: &Path,
    batch: usize,
    (rows, cols): (usize, usize),
    options: &Csv,
) -> Result<Vec<T>, CliError> {
    let (array, _) = array::<T>(path, options)?;
    let fits = match array.shape.as_slice() {
        [n] => batch == 1 && (rows == 1 || cols == 1) && *n == rows * cols,
        [r, c] => batch == 1 && (*r, *c) == (rows, cols),
        [b, r, c] => (*b, *r, *c) == (batch, rows, cols),
        _ => false,
    };
    if fits {
        return Ok(array.data);
    }
    let found: Vec<String> = array.shape.iter().map(usize::to_string).collect();
    let members = if batch > 1 { format!("{batch}×") } else { String::new() };
    Err(bad(format!(
        "the matrix is {}, and the plan says {members}{rows}×{cols}; plan for the shape that you have",
        found.join("×")
    ))
    .in_file(path))
}

/// A result as it goes to a file.
pub enum Numbers {
    /// Of a batch, or one.
    Reals(Vec<Matrix>),
    /// The same.
    Integers(Vec<Matrix<i128>>),
}

impl Numbers {
    fn shape(&self) -> Vec<usize> {
        let (members, (rows, cols)) = match self {
            Self::Reals(all) => (all.len(), all.first().map_or((0, 0), Matrix::shape)),
            Self::Integers(all) => (all.len(), all.first().map_or((0, 0), Matrix::shape)),
        };
        let batch = (members > 1).then_some(members);
        batch.into_iter().chain([rows, cols]).collect()
    }
}

/// Writes numbers, which do not take their place yet: several matrices only as .npy, names only as .csv.
pub fn write(path: &Path, numbers: &Numbers, names: &Names, options: &Csv) -> Result<Whole, CliError> {
    let (mut out, options) = (Output::create(path, Access::Usual)?, &named(path, options));
    let usage = |message: &str| Err(CliError::new(ErrorKind::Usage, message).in_file(path));
    match (format(path)?, numbers) {
        (Format::Npy, _) if *names != Names::default() => {
            return usage("names of rows and columns are written as .csv; name such an output, or leave the names out");
        }
        (Format::Csv, _) if numbers.shape().len() > 2 => {
            return usage("a batch of matrices is written as .npy; name such an output");
        }
        (Format::Npy, _) => write_npy(&mut out, numbers).in_file(path)?,
        // The shortest decimal that reads back as the same number.
        (Format::Csv, Numbers::Reals(all)) => {
            let rows = all.iter().flat_map(|m| m.data().chunks_exact(m.cols().max(1)));
            let texts = rows.map(|row| row.iter().map(f64::to_string).collect());
            csv_file::write(&mut out, names, texts, options).in_file(path)?;
        }
        (Format::Csv, Numbers::Integers(all)) => {
            let rows = all.iter().flat_map(|m| m.data().chunks_exact(m.shape().1.max(1)));
            let texts = rows.map(|row| row.iter().map(i128::to_string).collect());
            csv_file::write(&mut out, names, texts, options).in_file(path)?;
        }
    }
    out.finish()
}

fn write_npy(out: &mut Output, numbers: &Numbers) -> Result<(), CliError> {
    let shape: Vec<u64> = numbers.shape().iter().map(|n| *n as u64).collect();
    Ok(match numbers {
        Numbers::Reals(all) => npy::write(out, &shape, all.iter().flat_map(|m| m.data().iter().copied())),
        Numbers::Integers(all) => {
            let narrow: Result<Vec<i64>, _> = all.iter().flat_map(Matrix::data).map(|x| i64::try_from(*x)).collect();
            let narrow =
                narrow.map_err(|_| bad("an integer does not fit 64 bits; name an output that ends in .csv"))?;
            npy::write(out, &shape, narrow.into_iter())
        }
    }?)
}

#[cfg(test)]
mod tests {
    use super::{Element, whole};

    #[test]
    fn integers_in_text_keep_all_their_digits() {
        for (text, wanted) in [
            ("0", 0),
            ("-12", -12),
            ("+7", 7),
            ("3.000", 3),
            ("-0.0", 0),
            ("0.000000000000000000e+00", 0),
            ("1.700000000000000000e+01", 17),
            ("1.5E3", 1500),
            ("170e-1", 17),
            ("9007199254740993.0", (1 << 53) + 1),
            ("9007199254740993", (1 << 53) + 1),
            ("-170141183460469231731687303715884105728", i128::MIN),
            ("0e99", 0),
        ] {
            assert_eq!(whole(text), Some(wanted), "{text}");
        }
        let refused =
            ["4503599627370497.3", "0.99999999999999999", "1.5", "1e-1", "1e39", "1e999999999999", "1.-2", ".-5e2"];
        for text in refused.into_iter().chain(["", ".", "e", "nan", "inf", "1 2", "0x1", "1_0", "1.2.0"]) {
            assert_eq!(whole(text), None, "{text}");
        }
    }

    #[test]
    fn doubles_that_may_be_rounded_are_no_integers() {
        let edge = 9_007_199_254_740_992.0;
        assert_eq!(i128::of_real(edge - 1.0), Some((1 << 53) - 1));
        assert_eq!((i128::of_real(edge), i128::of_real(-edge), i128::of_real(0.5)), (None, None, None));
    }
}
