//! NumPy's .npy files.

use crate::error::CliError;
use crate::matrices::{Array, Element, MAX_BYTES, bad};
use std::io::Write;

/// Most bytes of the header of a .npy file; NumPy writes 128.
const MAX_NPY_HEADER: usize = 4096;

/// The first bytes of such a file.
pub const MAGIC: &[u8] = b"\x93NUMPY";

/// Refuses a header that claims more than a matrix of at most three axes can have, so that the
/// reader below allocates and multiplies only what is possible.
fn check_npy_header(bytes: &[u8]) -> Result<(), CliError> {
    let not = || bad("this is not a .npy file; save it with numpy.save");
    if !bytes.starts_with(MAGIC) {
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
        return Err(bad(
            "the .npy file does not hold a plain array of numbers of up to three axes; save such an array",
        ));
    }
    Ok(())
}

/// Reads an array.
pub fn read<T: Element>(bytes: &[u8]) -> Result<Array<T>, CliError> {
    check_npy_header(bytes)?;
    let file = npyz::NpyFile::new(bytes).map_err(|e| bad(format!("{e}; save it again with numpy.save")))?;
    let shape: Vec<usize> = file.shape().iter().map(|s| usize::try_from(*s).unwrap_or(usize::MAX)).collect();
    let fortran = file.order() == npyz::Order::Fortran;
    let dtype = file.dtype().descr();
    let len = shape.iter().try_fold(1usize, |n, s| n.checked_mul(*s));
    let len =
        len.filter(|n| (*n as u64) < MAX_BYTES).ok_or_else(|| bad("the array is too large; cut it into parts"))?;
    if len == 0 {
        return Err(bad("the array has no elements; give at least one"));
    }
    let data = numbers(file, &dtype)?;
    if data.len() != len {
        return Err(bad(format!("the file holds {} numbers where its shape says {len}; copy it again", data.len())));
    }
    Ok(Array { data: if fortran { row_major(&data, &shape) } else { data }, shape })
}

/// Tries each number type in turn; only the one that the file declares reads it.
fn numbers<T: Element>(file: npyz::NpyFile<&[u8]>, dtype: &str) -> Result<Vec<T>, CliError> {
    fn all<N: npyz::Deserialize, T: Element>(
        reader: npyz::NpyReader<N, &[u8]>,
        convert: impl Fn(N) -> Option<T>,
    ) -> Result<Vec<T>, CliError> {
        let mut out = Vec::new();
        for (at, found) in reader.enumerate() {
            let number = found.map_err(|_| bad("the file ends before its last number; copy it again"))?;
            out.push(convert(number).ok_or_else(|| bad(format!("number {at} is {}", T::WRONG)))?);
        }
        Ok(out)
    }
    macro_rules! attempt {
        ($file:ident, $convert:expr, $($type:ty),*) => {{
            $(let $file = match $file.try_data::<$type>() {
                Ok(reader) => return all(reader, |x| $convert(x.into())),
                Err(file) => file,
            };)*
            $file
        }};
    }
    let file = attempt!(file, T::of_real, f64, f32);
    let file = attempt!(file, T::of_whole, i64, i32, i16, i8, u64, u32, u16, u8);
    match file.try_data::<bool>() {
        Ok(reader) => all(reader, |x| T::of_whole(x.into())),
        Err(_) => Err(bad(format!("numbers of type {dtype} are not read; convert with .astype('float64')"))),
    }
}

/// Writes an array of doubles or 64-bit integers, row by row.
pub fn write<T: npyz::AutoSerialize + Copy>(
    out: &mut impl Write,
    shape: &[u64],
    data: impl Iterator<Item = T>,
) -> std::io::Result<()> {
    use npyz::WriterBuilder;
    let mut file = npyz::WriteOptions::new().default_dtype().shape(shape).writer(out).begin_nd()?;
    file.extend(data)?;
    file.finish()
}

/// Column by column to row by row, for any number of axes.
fn row_major<T: Copy>(data: &[T], shape: &[usize]) -> Vec<T> {
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
            let a = read::<f64>(&file(version, "<f8", "False", "(2, 3)", &doubles)).unwrap();
            assert_eq!((a.shape.as_slice(), a.data.as_slice()), (&[2, 3][..], &[1., 2., 3., 4., 5., 6.][..]));
        }
        let a = read::<f64>(&file(1, "<f8", "True", "(2, 3)", &doubles)).unwrap();
        assert_eq!(a.data, [1., 3., 5., 2., 4., 6.]);
        let floats: Vec<u8> = (1..=6).flat_map(|x| (x as f32).to_be_bytes()).collect();
        assert_eq!(read::<f64>(&file(1, ">f4", "False", "(6,)", &floats)).unwrap().shape, [6]);
        let ints: Vec<u8> = (1..=6i16).flat_map(i16::to_le_bytes).collect();
        assert_eq!(read::<f64>(&file(1, "<i2", "False", "(1, 2, 3)", &ints)).unwrap().data[5], 6.0);
        assert_eq!(read::<f64>(&file(1, "|b1", "False", "(2, 1)", &[0, 1])).unwrap().data, [0.0, 1.0]);
    }

    #[test]
    fn integers_keep_their_digits() {
        let large: Vec<u8> = [i64::MAX, -3].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(read::<i128>(&file(1, "<i8", "False", "(2,)", &large)).unwrap().data, [i64::MAX.into(), -3]);
        let reals: Vec<u8> = [2.0, 2.5f64].iter().flat_map(|x| x.to_le_bytes()).collect();
        let found = read::<i128>(&file(1, "<f8", "False", "(2,)", &reals)).map(|a| a.data);
        assert!(found.unwrap_err().to_string().contains("number 1 is not an integer"));
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
            assert!(read::<f64>(&bad).is_err(), "{}", String::from_utf8_lossy(&bad));
        }
    }
}
