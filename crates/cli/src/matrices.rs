//! Matrices in files: NumPy's .npy and .csv.

use crate::error::{Class, CliError, InFile};
use crate::files::{self, Access, Output, Whole};
use std::io::Write;
use std::path::Path;
use sudare_matrix::Matrix;
use sudare_matrix::packing::IntMatrix;

/// Most bytes of a matrix file.
const MAX_BYTES: u64 = 4 << 30;
/// Most bytes of the header of a .npy file; NumPy writes 128.
const MAX_NPY_HEADER: usize = 4096;

/// Numbers and the axes they came with.
struct Array {
    shape: Vec<usize>,
    /// Row by row.
    data: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Npy,
    Csv,
}

fn bad(message: impl Into<String>) -> CliError {
    CliError::new(Class::Data, message)
}

fn format(path: &Path) -> Result<Format, CliError> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match extension.as_str() {
        "npy" => Ok(Format::Npy),
        "csv" => Ok(Format::Csv),
        _ => Err(CliError::new(Class::Usage, "a matrix file ends in .npy or .csv").in_file(path)),
    }
}

/// Refuses a name that no matrix can be written to, before any work is done.
pub fn check_output(path: &Path) -> Result<(), CliError> {
    format(path).map(|_| ())
}

/// Reads `batch` matrices of a planned shape. One axis alone is taken for a row or a column,
/// whichever the plan has; with a batch the members are the first axis.
pub fn read(path: &Path, batch: usize, (rows, cols): (usize, usize)) -> Result<Vec<Matrix>, CliError> {
    let bytes = files::read(path, MAX_BYTES)?;
    let array = match format(path)? {
        Format::Npy => npy(&bytes),
        Format::Csv => csv(&bytes),
    }
    .in_file(path)?;
    let fits = match array.shape.as_slice() {
        [n] => batch == 1 && (rows == 1 || cols == 1) && *n == rows * cols,
        [r, c] => batch == 1 && (*r, *c) == (rows, cols),
        [b, r, c] => (*b, *r, *c) == (batch, rows, cols),
        _ => false,
    };
    if !fits {
        let found: Vec<String> = array.shape.iter().map(usize::to_string).collect();
        let members = if batch > 1 { format!("{batch}×") } else { String::new() };
        return Err(bad(format!(
            "the matrix is {}, and the plan says {members}{rows}×{cols}; plan for the shape that you have",
            found.join("×")
        ))
        .in_file(path));
    }
    let each = array.data.chunks_exact(rows * cols).map(|m| Matrix::new(rows, cols, m.to_vec()));
    each.collect::<Result<Vec<_>, _>>().in_file(path)
}

/// Largest integer up to which all of them are doubles.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The integers of an exact plan's only matrix, which files hold as numbers.
pub fn integers(matrices: &[Matrix]) -> Result<IntMatrix, CliError> {
    let [matrix] = matrices else { return Err(bad("an exact plan takes one matrix at a time")) };
    let whole = |x: &f64| x.fract() == 0.0 && x.abs() <= MAX_WHOLE;
    if let Some(at) = matrix.data().iter().position(|x| !whole(x)) {
        let (row, col, x) = (at / matrix.cols(), at % matrix.cols(), matrix.data()[at]);
        return Err(bad(format!("element ({row}, {col}) is {x}, and the plan computes with integers up to 2^53 here")));
    }
    let data = matrix.data().iter().map(|x| *x as i128).collect();
    Ok(IntMatrix::new(matrix.rows(), matrix.cols(), data)?)
}

/// The result of an exact plan as numbers for a file.
pub fn reals(found: &IntMatrix) -> Result<Vec<Matrix>, CliError> {
    let (rows, cols) = found.shape();
    if found.data().iter().any(|x| x.unsigned_abs() > MAX_WHOLE as u128) {
        return Err(bad(
            "the result has integers over 2^53, which a file of doubles would round; decrypt it in Python",
        ));
    }
    Ok(vec![Matrix::new(rows, cols, found.data().iter().map(|x| *x as f64).collect())?])
}

/// Refuses a header that claims more than a matrix of at most three axes can have, so that the
/// reader below allocates and multiplies only what is possible.
fn check_npy_header(bytes: &[u8]) -> Result<(), CliError> {
    let not = || bad("this is not a .npy file");
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err(not());
    }
    let (start, length) = match bytes.get(6..12) {
        Some([1, _, a, b, ..]) => (10, usize::from(u16::from_le_bytes([*a, *b]))),
        Some([2 | 3, _, a, b, c, d]) => (12, u32::from_le_bytes([*a, *b, *c, *d]) as usize),
        Some(_) => return Err(bad("this version of the .npy format is unknown; save it with numpy.save")),
        None => return Err(not()),
    };
    let text = (length <= MAX_NPY_HEADER).then(|| bytes.get(start..start + length)).flatten();
    let text = text.ok_or_else(|| bad("the .npy header is too long or cut off; save it again"))?;
    let count = |c: u8| text.iter().filter(|b| **b == c).count();
    let flat = count(b'(') <= 1 && count(b'{') <= 1 && count(b'[') == 0 && text.is_ascii();
    // At most 18 digits in the shape: no product of its sides passes 64 bits.
    let shape = text.iter().skip_while(|b| **b != b'(').take_while(|b| **b != b')');
    let digits = shape.filter(|b| b.is_ascii_digit()).count();
    if !flat || digits > 18 {
        return Err(bad("the .npy file does not hold a plain array of numbers of up to three axes"));
    }
    Ok(())
}

fn npy(bytes: &[u8]) -> Result<Array, CliError> {
    check_npy_header(bytes)?;
    let file = npyz::NpyFile::new(bytes).map_err(|e| bad(format!("{e}; save it again with numpy.save")))?;
    let shape: Vec<usize> = file.shape().iter().map(|s| usize::try_from(*s).unwrap_or(usize::MAX)).collect();
    let fortran = file.order() == npyz::Order::Fortran;
    let dtype = file.dtype().descr();
    let len = shape.iter().try_fold(1usize, |n, s| n.checked_mul(*s));
    let len = len.filter(|n| (*n as u64) < MAX_BYTES).ok_or_else(|| bad("the array is too large"))?;
    if len == 0 {
        return Err(bad("the array is empty"));
    }
    let data = numbers(file, &dtype)?;
    if data.len() != len {
        return Err(bad(format!("the file holds {} numbers where its shape says {len}; copy it again", data.len())));
    }
    Ok(Array { data: if fortran { row_major(&data, &shape) } else { data }, shape })
}

/// Tries each number type in turn; only the one that the file declares reads it.
fn numbers(file: npyz::NpyFile<&[u8]>, dtype: &str) -> Result<Vec<f64>, CliError> {
    fn all<T: npyz::Deserialize>(
        reader: npyz::NpyReader<T, &[u8]>,
        convert: impl Fn(T) -> f64,
    ) -> Result<Vec<f64>, CliError> {
        let values = reader.map(|x| x.map(&convert)).collect::<std::io::Result<Vec<f64>>>();
        values.map_err(|_| bad("the file ends before its last number; copy it again"))
    }
    macro_rules! attempt {
        ($file:ident, $($type:ty),*) => {{
            $(let $file = match $file.try_data::<$type>() {
                Ok(reader) => return all(reader, |x| x as f64),
                Err(file) => file,
            };)*
            $file
        }};
    }
    let file = attempt!(file, f64, f32, i64, i32, i16, i8, u64, u32, u16, u8);
    match file.try_data::<bool>() {
        Ok(reader) => all(reader, |x| f64::from(u8::from(x))),
        Err(_) => Err(bad(format!("numbers of type {dtype} are not read; convert with .astype('float64')"))),
    }
}

/// Column by column to row by row, for any number of axes.
fn row_major(data: &[f64], shape: &[usize]) -> Vec<f64> {
    let mut index = vec![0; shape.len()];
    let mut out = Vec::with_capacity(data.len());
    for _ in 0..data.len() {
        let at = index.iter().zip(shape).rev().fold(0, |at, (i, s)| at * s + i);
        out.push(data[at]);
        for (i, s) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < *s {
                break;
            }
            *i = 0;
        }
    }
    out
}

fn csv(bytes: &[u8]) -> Result<Array, CliError> {
    // A byte order mark is what some spreadsheets begin with.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(bytes);
    let (mut data, mut rows, mut cols) = (Vec::new(), 0usize, None);
    for (at, record) in reader.records().enumerate() {
        let record = record.map_err(|e| bad(format!("{e}")))?;
        let line = record.position().map_or(at as u64 + 1, csv::Position::line);
        let fields: Vec<Result<f64, &str>> = record.iter().map(|f| f.parse::<f64>().map_err(|_| f)).collect();
        // A first line of names is no data.
        if at == 0 && fields.iter().any(|f| f.is_err_and(|f| !f.is_empty())) && fields.iter().all(Result::is_err) {
            cols = Some(fields.len());
            continue;
        }
        let expected = *cols.get_or_insert(fields.len());
        if fields.len() != expected {
            return Err(bad(format!("line {line} has {} columns and the lines before it {expected}", fields.len())));
        }
        for (column, field) in fields.into_iter().enumerate() {
            let number = field.map_err(|f| {
                let shown: String = f.chars().take(24).collect();
                bad(format!("line {line}, column {}: {shown:?} is not a number", column + 1))
            })?;
            data.push(number);
        }
        rows += 1;
    }
    match cols {
        Some(cols) if rows > 0 => Ok(Array { shape: vec![rows, cols], data }),
        _ => Err(bad("the file holds no numbers")),
    }
}

/// Writes matrices of one shape, which do not take their place yet; several only as .npy.
pub fn write(path: &Path, matrices: &[Matrix]) -> Result<Whole, CliError> {
    let (rows, cols) = matrices.first().map_or((0, 0), Matrix::shape);
    let mut out = Output::create(path, Access::Usual)?;
    match format(path)? {
        Format::Npy => {
            use npyz::WriterBuilder;
            let shape: Vec<u64> = match matrices.len() {
                1 => vec![rows as u64, cols as u64],
                b => vec![b as u64, rows as u64, cols as u64],
            };
            let written = (|| {
                let mut npy = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut out).begin_nd()?;
                matrices.iter().try_for_each(|m| npy.extend(m.data().iter().copied()))?;
                npy.finish()
            })();
            written.in_file(path)?;
        }
        Format::Csv => {
            if matrices.len() > 1 {
                return Err(CliError::new(Class::Usage, "a batch is written as .npy").in_file(path));
            }
            for row in matrices.iter().flat_map(|m| m.data().chunks_exact(cols.max(1))) {
                // The shortest decimal that reads back as the same number.
                let fields: Vec<String> = row.iter().map(f64::to_string).collect();
                writeln!(out, "{}", fields.join(",")).in_file(path)?;
            }
        }
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(version: u8, text: &str) -> Vec<u8> {
        let mut out = b"\x93NUMPY".to_vec();
        out.extend([version, 0]);
        match version {
            1 => out.extend((text.len() as u16).to_le_bytes()),
            _ => out.extend((text.len() as u32).to_le_bytes()),
        }
        out.extend(text.as_bytes());
        out
    }

    fn file(version: u8, descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let mut out =
            header(version, &format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n"));
        out.extend(data);
        out
    }

    #[test]
    fn arrays_of_every_type_and_order() {
        let doubles: Vec<u8> = (1..=6).flat_map(|x| f64::from(x).to_le_bytes()).collect();
        for version in [1, 2, 3] {
            let a = npy(&file(version, "<f8", "False", "(2, 3)", &doubles)).unwrap();
            assert_eq!((a.shape.as_slice(), a.data.as_slice()), (&[2, 3][..], &[1., 2., 3., 4., 5., 6.][..]));
        }
        let a = npy(&file(1, "<f8", "True", "(2, 3)", &doubles)).unwrap();
        assert_eq!(a.data, [1., 3., 5., 2., 4., 6.]);
        let floats: Vec<u8> = (1..=6).flat_map(|x| (x as f32).to_be_bytes()).collect();
        assert_eq!(npy(&file(1, ">f4", "False", "(6,)", &floats)).unwrap().shape, [6]);
        let ints: Vec<u8> = (1..=6i16).flat_map(i16::to_le_bytes).collect();
        assert_eq!(npy(&file(1, "<i2", "False", "(1, 2, 3)", &ints)).unwrap().data[5], 6.0);
        assert_eq!(npy(&file(1, "|b1", "False", "(2, 1)", &[0, 1])).unwrap().data, [0.0, 1.0]);
    }

    #[test]
    fn hostile_arrays() {
        let eight = [0u8; 8];
        for bad in [
            b"".to_vec(),
            b"\x93NUMPY".to_vec(),
            b"\x93NUMPY\x01\x00\xff\xff".to_vec(),
            b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(),
            b"\x93NUMPY\x09\x00\x00\x00\x00\x00".to_vec(),
            header(1, &"(".repeat(3000)),
            header(1, "{}"),
            file(1, "<f8", "False", "(99999999999, 99999999999)", &eight),
            file(1, "<f8", "False", "(999999999, 999999999)", &eight),
            file(1, "<f8", "False", "(1, 2)", &eight),
            file(1, "<f8", "False", "(0, 2)", &eight),
            file(1, "<c16", "False", "(1, 1)", &eight),
            file(1, "|O", "False", "(1, 1)", &eight),
            file(1, "<f8", "Perhaps", "(1, 1)", &eight),
        ] {
            assert!(npy(&bad).is_err(), "{}", String::from_utf8_lossy(&bad));
        }
    }

    #[test]
    fn comma_separated() {
        let a = csv(b"\xef\xbb\xbfheight,weight\n1, 2.5\r\n-3e2,4\n").unwrap();
        assert_eq!((a.shape, a.data), (vec![2, 2], vec![1.0, 2.5, -300.0, 4.0]));
        assert_eq!(csv(b"1\n2\n3").unwrap().shape, [3, 1]);
        for bad in ["", "a,b\n", "1,2\n3\n", "1,2\n3,x\n", "1,,2\n", "a,b\n1,2,3\n", "1,b\n2,3\n"] {
            assert!(csv(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
