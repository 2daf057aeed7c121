//! Tables of text: .csv files, with names of rows and columns beside the numbers.

use crate::args::Csv;
use crate::error::CliError;
use crate::matrices::{Array, Element, bad};
use std::io::Write;
use sudare_ring::ErrorKind;

/// What stands beside the numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    /// What the first line says over the rows' names.
    pub corner: String,
    /// Of each row, if the first column has them.
    pub rows: Option<Vec<String>>,
    /// Of each column, if the first line has them.
    pub columns: Option<Vec<String>>,
}

/// Most columns of a table of text.
const MOST_COLUMNS: usize = 1 << 20;

/// A line: the name that it may begin with, the number that the name may be, and the other numbers.
type Line<T> = (String, Option<T>, Vec<T>);

/// Reads numbers and names. A first line without a number has the columns' names; a first column without one the
/// rows'.
pub fn read<T: Element>(bytes: &[u8], options: &Csv) -> Result<(Array<T>, Names), CliError> {
    let (header, lines) = lines(bytes, options)?;
    table(header, lines, options)
}

/// Reads names alone. A file that ends after its first line has those of the columns; with `index` the first of them
/// stands over the rows' names.
pub fn names(bytes: &[u8], options: &Csv) -> Result<Names, CliError> {
    match lines::<f64>(bytes, options)? {
        (Some(mut header), lines) if lines.is_empty() => {
            let corner = if options.index { header.remove(0) } else { String::new() };
            Ok(Names { corner, rows: None, columns: Some(header) })
        }
        (header, lines) => Ok(table(header, lines, options)?.1),
    }
}

/// The first line, if it has names, and the lines of numbers.
#[expect(clippy::type_complexity, reason = "used by the two functions above alone")]
fn lines<T: Element>(bytes: &[u8], options: &Csv) -> Result<(Option<Vec<String>>, Vec<Line<T>>), CliError> {
    // A byte order mark is what some spreadsheets begin with.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let separator = options.separator.unwrap_or_else(|| separator(bytes));
    if options.decimal_comma && separator == b',' {
        return Err(CliError::new(
            ErrorKind::Usage,
            "with a decimal comma, columns need another separator than a comma; name it with --separator",
        ));
    }
    // Before the line is cut up, which takes tens of bytes for each of its commas.
    let columns = |line: &[u8]| line.iter().filter(|b| **b == separator).count();
    if let Some(at) = bytes.split(|b| *b == b'\n').position(|line| columns(line) >= MOST_COLUMNS) {
        return Err(bad(format!("line {} has more than {MOST_COLUMNS} columns; give such an array as .npy", at + 1)));
    }
    let mut reader = csv::ReaderBuilder::new();
    reader.has_headers(false).flexible(true).trim(csv::Trim::All).comment(Some(b'#')).delimiter(separator);
    // What is a number of another kind is no name.
    let is_name = |field: &str| number::<f64>(field, options).is_none();
    let (mut header, mut lines, mut width): (Option<Vec<String>>, Vec<Line<T>>, _) = (None, Vec::new(), None);
    for (at, record) in reader.from_reader(bytes).records().enumerate() {
        let record = record.map_err(|e| bad(format!("{e}")))?;
        let line = record.position().map_or(at as u64 + 1, csv::Position::line);
        let aligned = |field: &&str| separator != b' ' || !field.is_empty();
        let fields: Vec<&str> = record.iter().filter(aligned).collect();
        if fields.is_empty() {
            continue;
        }
        let numbers: Vec<Option<T>> = fields.iter().map(|f| number(f, options)).collect();
        if header.is_none()
            && lines.is_empty()
            && fields.iter().all(|f| is_name(f))
            && fields.iter().any(|f| !f.is_empty())
        {
            // A row of numbers would be lost.
            if let Some(column) = fields.iter().position(|f| is_grouped(f)) {
                return Err(wrong::<T>(fields[column], line, column));
            }
            header = Some(fields.iter().map(|f| f.to_string()).collect());
            continue;
        }
        let expected = *width.get_or_insert(fields.len());
        if fields.len() != expected {
            return Err(bad(format!(
                "line {line} has {} columns, and the lines before it have {expected}",
                fields.len()
            )));
        }
        let mut rest = Vec::with_capacity(fields.len());
        for (column, (field, number)) in fields.iter().zip(&numbers).enumerate().skip(1) {
            rest.push(number.ok_or_else(|| wrong::<T>(field, line, column))?);
        }
        // Names of all rows, or of none.
        let named = |text: &str, number: Option<T>| {
            let written_otherwise = has_decimal_comma(text) || is_grouped(text);
            !text.is_empty() && number.is_none() && is_name(text) && !written_otherwise && expected > 1
        };
        if let Some((first, number, _)) = lines.first()
            && named(first, *number) != named(fields[0], numbers[0])
            && !options.index
        {
            return Err(match numbers[0] {
                None => wrong::<T>(fields[0], line, 0),
                Some(_) => bad(format!(
                    "line {line} begins with a number, and the lines before it begin with names; add --index if it is \
                     a name"
                )),
            });
        }
        if numbers[0].is_none() && !named(fields[0], numbers[0]) && !options.index {
            return Err(wrong::<T>(fields[0], line, 0));
        }
        lines.push((fields[0].to_string(), numbers[0], rest));
    }
    Ok((header, lines))
}

/// Lines of one width as an array and its names.
fn table<T: Element>(
    header: Option<Vec<String>>,
    lines: Vec<Line<T>>,
    options: &Csv,
) -> Result<(Array<T>, Names), CliError> {
    let Some((_, number, rest)) = lines.first() else {
        return Err(bad("the file holds no numbers; check its separator"));
    };
    let indexed = options.index || number.is_none();
    let cols = rest.len() + usize::from(!indexed);
    if cols == 0 {
        return Err(bad("the file holds names alone; leave --index out"));
    }
    let mut names = Names::default();
    if let Some(mut header) = header {
        // R writes no name over the rows' names.
        if indexed && header.len() == cols + 1 {
            names.corner = header.remove(0);
        }
        if header.len() != cols {
            return Err(bad(format!("the first line names {} columns, and the others have {cols}", header.len())));
        }
        names.columns = Some(header);
    }
    let mut array = Array { shape: vec![lines.len(), cols], data: Vec::with_capacity(lines.len() * cols) };
    let mut rows = Vec::new();
    for (name, number, rest) in lines {
        match (indexed, number) {
            (true, _) => rows.push(name),
            (false, number) => array.data.extend(number),
        }
        array.data.extend(rest);
    }
    names.rows = indexed.then_some(rows);
    Ok((array, names))
}

fn wrong<T: Element>(field: &str, line: u64, column: usize) -> CliError {
    // The place alone: what stands there is the owner's, and messages travel.
    let grouped = match (column, is_grouped(field)) {
        (_, false) => "",
        (0, true) => "; write thousands without a separator, as 1000.5, or add --index if it is a name",
        (_, true) => "; write thousands without a separator, as 1000.5",
    };
    let comma = if has_decimal_comma(field) { "; add --decimal-comma if that is one" } else { "" };
    bad(format!("line {line}, column {} is {}{comma}{grouped}", column + 1, T::WRONG))
}

/// `1,000.5`, `1_000`, `1'000`: a number whose thousands are set apart.
fn is_grouped(field: &str) -> bool {
    let text = field.trim_start_matches(['-', '+']);
    let separator = |c: char| matches!(c, ',' | '_' | '\'' | '’' | ' ' | '\u{a0}' | '\u{202f}');
    let Some(mark) = text.chars().find(|c| separator(*c)) else { return false };
    let (whole, rest) = match text.split_once('.') {
        Some((whole, rest)) => (whole, rest),
        None => (text, "0"),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (mut groups, three) = (whole.split(mark), |group: &str| digits(group) && group.len() == 3);
    groups.next().is_some_and(|first| digits(first) && first.len() <= 3) && groups.all(three) && digits(rest)
}

/// `1,5`.
fn has_decimal_comma(field: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    field.split_once(',').is_some_and(|(whole, rest)| digits(whole.trim_start_matches(['-', '+'])) && digits(rest))
}

fn number<T: Element>(field: &str, options: &Csv) -> Option<T> {
    match options.decimal_comma {
        true if field.contains('.') => None,
        true => T::parse(&field.replace(',', ".")),
        false => T::parse(field),
    }
}

/// The separator of the second line, which is one of numbers: tab, semicolon, comma or space.
fn separator(bytes: &[u8]) -> u8 {
    let lines = bytes.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).filter(|l| !l.is_empty() && l[0] != b'#');
    let line = lines.take(2).last().unwrap_or_default();
    *b"\t;, ".iter().find(|s| line.contains(s)).unwrap_or(&b',')
}

/// Writes rows of texts with the names that there are.
pub fn write(
    out: impl Write,
    names: &Names,
    rows: impl Iterator<Item = Vec<String>>,
    options: &Csv,
) -> Result<(), CliError> {
    let separator = options.separator.unwrap_or(if options.decimal_comma { b';' } else { b',' });
    if options.decimal_comma && separator == b',' {
        return Err(CliError::new(
            ErrorKind::Usage,
            "with a decimal comma, columns need another separator than a comma; name it with --separator",
        ));
    }
    // A name that would begin a comment is quoted.
    let mut file = csv::WriterBuilder::new().delimiter(separator).flexible(true).comment(Some(b'#')).from_writer(out);
    let fault = |e: csv::Error| match e.into_kind() {
        csv::ErrorKind::Io(e) => CliError::from(e),
        e => bad(format!("{e:?}")),
    };
    if let Some(columns) = &names.columns {
        let corner = names.rows.is_some().then_some(&names.corner);
        file.write_record(corner.into_iter().chain(columns)).map_err(fault)?;
    }
    for (i, row) in rows.enumerate() {
        let row = row.into_iter().map(|text| if options.decimal_comma { text.replace('.', ",") } else { text });
        let name = names.rows.as_ref().and_then(|rows| rows.get(i)).cloned();
        file.write_record(name.into_iter().chain(row)).map_err(fault)?;
    }
    file.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(text: &str) -> Result<(Array<f64>, Names), CliError> {
        read(text.as_bytes(), &Csv::default())
    }

    #[test]
    fn comma_separated() {
        let (a, names) = csv("\u{feff}height,weight\n1, 2.5\r\n-3e2,4\n").unwrap();
        assert_eq!((a.shape, a.data), (vec![2, 2], vec![1.0, 2.5, -300.0, 4.0]));
        assert_eq!(names.columns.unwrap(), ["height", "weight"]);
        assert_eq!(csv("1\n2\n3").unwrap().0.shape, [3, 1]);
        assert!(csv(&",".repeat(MOST_COLUMNS)).unwrap_err().to_string().contains("line 1 has more than"));
        for bad in
            ["", "a,b\n", "1,2\n3\n", "1,2\n3,x\n", "1,,2\n", "a,b\n1,2,3\n", "1,b\n2,3\n", "1,2\nx,3\n", ",2\n,3\n"]
        {
            assert!(csv(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn other_separators_and_comments() {
        for text in ["# by hand\na;b\n1;2\n# more\n3;4\n", "a\tb\n1\t2\n3\t4", "1.0 2.0\n3.0  4.0\n", "1 ,2\n3,4"] {
            let (a, _) = csv(text).unwrap();
            assert_eq!((a.shape, a.data), (vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]), "{text:?}");
        }
        // A line of a form feed has nothing in it.
        assert_eq!(csv("\x0c\n1 9\n").unwrap().0.data, [1.0, 9.0]);
        assert!(csv("\x0c\n@ 9\n").is_ok() && csv("\x0c\n\x0c \x0c\n").is_err());
        let comma = Csv { decimal_comma: true, ..Csv::default() };
        assert_eq!(read::<f64>(b"1,5;2\n-3,25;4", &comma).unwrap().0.data, [1.5, 2.0, -3.25, 4.0]);
        assert!(csv("1,5;2\n3;4").unwrap_err().to_string().contains("--decimal-comma"));
        assert!(read::<f64>(b"1.500,5;2\n3;4", &comma).is_err(), "thousands are not guessed");
    }

    #[test]
    fn thousands_that_are_set_apart_are_no_names() {
        for first in ["\"1,000.5\",2", "1_000,2", "1'000,2", "-12 345.25,2", "\"1,000,000\",2"] {
            for rest in ["3,4\n", "\"2,000.5\",4\n", ""] {
                let told = csv(&format!("{first}\n{rest}")).unwrap_err().to_string();
                assert!(told.contains("line 1, column 1 ") && told.contains("as 1000.5"), "{first} {rest}: {told}");
            }
        }
        assert!(csv("x,y\n1,\"2,000.5\"\n").unwrap_err().to_string().contains("line 2, column 2 "));
        assert!(csv("\"1,000.5\",\"2,000.5\"\n3,4\n").unwrap_err().to_string().contains("line 1, column 1 "));
        // Dates, versions, addresses and numbers of houses are names.
        for name in ["2026-11-27", "27.11.2026", "10.0.0.1", "12:30", "7 bis", "1_0", "25%"] {
            assert_eq!(csv(&format!("{name},2\nx,4\n")).unwrap().1.rows.unwrap(), [name, "x"]);
        }
        let index = Csv { index: true, ..Csv::default() };
        assert_eq!(read::<f64>(b"1_000,2\n3,4\n", &index).unwrap().1.rows.unwrap(), ["1_000", "3"]);
    }

    #[test]
    fn names_of_rows() {
        let (a, names) = csv("patient,x,y\nanna,1,2\n\"smith, jo\",3,4\n").unwrap();
        assert_eq!((a.shape.as_slice(), names.corner.as_str()), (&[2, 2][..], "patient"));
        assert_eq!(names.rows.as_deref().unwrap(), ["anna", "smith, jo"]);
        let mut out = Vec::new();
        write(
            &mut out,
            &names,
            [["1".into(), "2".into()], ["3".into(), "4".into()]].map(Vec::from).into_iter(),
            &Csv::default(),
        )
        .unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "patient,x,y\nanna,1,2\n\"smith, jo\",3,4\n");
        // A name may look like a comment.
        let (a, names) = csv("\"#1\",1,2\n").unwrap();
        let mut out = Vec::new();
        write(&mut out, &names, std::iter::once(vec!["1".into(), "2".into()]), &Csv::default()).unwrap();
        let (again, named) = read::<f64>(&out, &Csv::default()).unwrap();
        assert_eq!((again.data, named), (a.data, names));
        let index = Csv { index: true, ..Csv::default() };
        let (a, names) = read::<f64>(b"id,x\n7,1\n9,2\n", &index).unwrap();
        assert_eq!((a.data, names.rows.unwrap()), (vec![1.0, 2.0], vec!["7".into(), "9".into()]));
        assert!(csv("a,1\n5,2\n").unwrap_err().to_string().contains("--index"));
    }

    #[test]
    fn names_without_numbers() {
        let of = |text: &str, options: &Csv| names(text.as_bytes(), options);
        let columns = |text: &str| of(text, &Csv::default()).unwrap().columns.unwrap();
        assert_eq!(columns("\u{feff}age,height\n"), ["age", "height"]);
        assert_eq!(columns("# of the fit\nage;\"height; cm\"\n"), ["age", "height; cm"]);
        assert_eq!(columns("patient,age\nanna,1\n"), ["age"]);
        let index = of("patient,age\n", &Csv { index: true, ..Csv::default() }).unwrap();
        assert_eq!((index.corner.as_str(), index.columns.unwrap()), ("patient", vec!["age".to_owned()]));
        assert_eq!(of("1,2\n", &Csv::default()).unwrap(), Names::default());
        assert!(of("", &Csv::default()).is_err() && of("age\nheight\n", &Csv::default()).is_err());
    }
}
