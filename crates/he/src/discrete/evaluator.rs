//! Computing on integers: sums, multiples, tables, products, gates.

use super::coefficients::Coefficients;
use super::crypt::{Fresh, arranged};
use super::forecast::{Forecast, rotated};
use super::gate::{Gate, Input};
use super::table::Table;
use super::value::{Discrete, Form, check_error, check_modulus, scale};
use crate::circuits::bootstrapping::{BootstrapParams, Bootstrapper, Errors, TableInput, TableOutput, Tables};
use crate::ckks::{self, Ciphertext, EncodeAt, Encoder, State};
use crate::error::{HeError, parameters};
use num_complex::Complex64;
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::noise::NEGLIGIBLE;
use sudare_rlwe::{self as rlwe, KeyId, RlweError};

/// For errors.
const OPERATION: &str = "a table";

/// What makes one ciphertext of two.
type Combination = fn(&ckks::Evaluator, &Ciphertext, &Ciphertext) -> Result<Ciphertext, HeError>;

/// Tables of more than one value, and how they are computed; none where there are none.
struct Planned {
    outputs: Vec<TableOutput>,
    tables: Option<Tables>,
}

/// Computes on integers with a server's keys. Operands are never changed, and what could come out wrong is refused before any
/// work.
#[derive(Debug)]
pub struct Evaluator {
    bootstrapper: Bootstrapper,
    /// With the keys of rotations.
    turning: Option<ckks::Evaluator>,
}

impl Evaluator {
    /// An evaluator of a bootstrapper with a set for tables.
    ///
    /// # Errors
    /// `RlweError::Parameters` for another set.
    pub fn new(bootstrapper: Bootstrapper) -> Result<Self, HeError> {
        bootstrapper.params().layout().exponential()?;
        Ok(Self { bootstrapper, turning: None })
    }

    /// The same with keys for [`Evaluator::rotate`].
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey` for keys of another set or owner.
    pub fn with_keys(self, keys: EvalKeys) -> Result<Self, HeError> {
        if let Some(own) = self.bootstrapper.keys() {
            own.id().require("the keys of rotations", keys.id())?;
        }
        let turning = ckks::Evaluator::new(self.params().params(), keys)?;
        Ok(Self { turning: Some(turning), ..self })
    }

    /// The set.
    pub fn params(&self) -> &BootstrapParams {
        self.bootstrapper.params()
    }

    /// The bootstrapper: keys, diagonals, counters.
    pub fn bootstrapper(&self) -> &Bootstrapper {
        &self.bootstrapper
    }

    /// Bytes of its keys, those of rotations too, and of what is prepared.
    pub fn bytes(&self) -> usize {
        self.bootstrapper.bytes() + self.turning.as_ref().map_or(0, |ckks| ckks.keys().bytes())
    }

    fn ckks(&self) -> &ckks::Evaluator {
        self.bootstrapper.evaluator()
    }

    /// a + b.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`; `RlweError::WrongPlainModulus` for another modulus,
    /// `RlweError::Operands` for another form; `RlweError::NoBudget` where the error would reach ½, [`HeError::TooLarge`].
    pub fn add(&self, a: &Discrete, b: &Discrete) -> Result<Discrete, HeError> {
        self.combine("addition", a, b, (|b| b, ckks::Evaluator::add))
    }

    /// a − b.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn sub(&self, a: &Discrete, b: &Discrete) -> Result<Discrete, HeError> {
        self.combine("subtraction", a, b, (Forecast::opposite, ckks::Evaluator::sub))
    }

    fn combine(
        &self,
        operation: &'static str,
        a: &Discrete,
        b: &Discrete,
        (term, work): (fn(Forecast) -> Forecast, Combination),
    ) -> Result<Discrete, HeError> {
        self.check_alike(operation, a, b)?;
        check_error(operation, a.error() + b.error(), a.level().min(b.level()))?;
        let level = a.level().min(b.level());
        let (a, b) = (self.lower(a, level)?, self.lower(b, level)?);
        let known = a.known().sum(term(b.known()))?;
        let parts = a.parts.iter().zip(&b.parts).map(|(x, y)| work(self.ckks(), x, y)).collect::<Result<_, _>>()?;
        Discrete::of(operation, parts, known)
    }

    /// a · k for an integer k.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn mul_integer(&self, a: &Discrete, k: i64) -> Result<Discrete, HeError> {
        let operation = "product with an integer";
        self.check(a)?;
        let k = a.known().least(k);
        let known = a.known().multiple(k);
        check_error(operation, known.errors.bound, a.level())?;
        let parts = a.parts.iter().map(|c| self.ckks().mul_integer(c, k)).collect::<Result<_, _>>()?;
        Discrete::of(operation, parts, known)
    }

    /// a + k for an integer k, from −t to t.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; [`HeError::NotBelow`] for a larger k.
    pub fn add_integer(&self, a: &Discrete, k: i64) -> Result<Discrete, HeError> {
        let operation = "sum with an integer";
        self.check(a)?;
        let known = a.known().shifted(k)?;
        let parts = a.parts.iter().map(|c| self.constant(c, k, a.form())).collect::<Result<_, _>>()?;
        Discrete::of(operation, parts, known)
    }

    /// a + k for known integers k from 0 to t − 1, one for each of the N.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; `RlweError::Operands` for another number of them, [`HeError::NotBelow`].
    pub fn add_known(&self, a: &Discrete, values: &[u64]) -> Result<Discrete, HeError> {
        let operation = "sum with known integers";
        self.check(a)?;
        let degree = self.params().params().degree();
        if values.len() != degree {
            return Err(RlweError::Operands { operation, left: degree, right: values.len() }.into());
        }
        if let Some(index) = values.iter().position(|x| *x >= a.modulus) {
            return Err(HeError::NotBelow { what: "addend", index, modulus: a.modulus });
        }
        let number = |i: usize| values[i] as f64;
        let half = degree / 2;
        let slots = |part: usize| -> Vec<Complex64> {
            let imaginary = |i: usize| if a.form() == Form::Packed { number(half + i) } else { 0.0 };
            (0..half).map(|i| Complex64::new(number(part * half + i), imaginary(i))).collect()
        };
        let largest = values.iter().copied().max().unwrap_or(0);
        let at = |c: &Ciphertext| {
            let max_abs = std::f64::consts::SQRT_2 * largest as f64;
            EncodeAt { level: c.level(), scale: c.scale(), max_abs }
        };
        let encoder = Encoder::new(self.ckks().params());
        let one =
            |(part, c): (usize, &Ciphertext)| self.ckks().add_plain(c, &encoder.encode_complex(&slots(part), at(c))?);
        let errors = a.errors.plus(Errors::within(encoding_error(self.params(), at(&a.parts[0]))));
        let parts = a.parts.iter().enumerate().map(one).collect::<Result<_, HeError>>()?;
        Discrete::new(operation, parts, a.modulus, (a.range.0, a.range.1 + largest as i64), errors)
    }

    /// The integers where `kept` says so, of all N, and zeros elsewhere; of split values, one level lower.
    ///
    /// # Errors
    /// As [`Evaluator::mul`]; `RlweError::Operands` for another number than N.
    pub fn mask(&self, a: &Discrete, kept: &[bool]) -> Result<Discrete, HeError> {
        let operation = "a mask";
        self.check(a)?;
        self.check_split(operation, a)?;
        self.check_above(operation, a.level())?;
        let degree = self.params().params().degree();
        if kept.len() != degree {
            return Err(RlweError::Operands { operation, left: degree, right: kept.len() }.into());
        }
        let (level, sketch) = (a.level(), &self.params().layout().chain);
        let wanted = scale(self.params(), a.modulus, level - 1);
        let at = |c: &Ciphertext| EncodeAt { level, scale: wanted * sketch.q()[level] / c.scale(), max_abs: 1.0 };
        let encoder = Encoder::new(self.ckks().params());
        let one = |(c, kept): (&Ciphertext, &[bool])| {
            let values: Vec<f64> = kept.iter().map(|k| f64::from(u8::from(*k))).collect();
            self.ckks().mul_plain_rescale(c, &encoder.encode_at(&values, at(c))?)
        };
        // The mask's own error times what stands in a slot.
        let own = encoding_error(self.params(), at(&a.parts[0])) * (a.largest() + 1.0);
        let divided = Errors::of_noise(sketch.degree(), &sketch.division(2), wanted);
        let errors = a.errors.plus(divided).plus(Errors::within(own));
        check_error(operation, errors.bound, level - 1)?;
        let parts = a.parts.iter().zip(kept.chunks(degree / 2)).map(one).collect::<Result<Vec<_>, _>>()?;
        let range = (a.range.0.min(0), a.range.1.max(0));
        Discrete::new(operation, self.at_scale(parts, a.modulus), a.modulus, range, errors)
    }

    /// The integer k added in every slot, in both parts of packed ones.
    fn constant(&self, c: &Ciphertext, k: i64, form: Form) -> Result<Ciphertext, HeError> {
        // Real parts are the constant coefficient, and imaginary ones that of X^(N/2).
        let half = c.params().degree() / 2;
        let mut values = vec![0.0; if form == Form::Packed { half + 1 } else { 1 }];
        values.iter_mut().step_by(half).for_each(|x| *x = k as f64);
        let at = EncodeAt { level: c.level(), scale: c.scale(), max_abs: k.unsigned_abs() as f64 };
        let plain = Encoder::new(self.ckks().params()).encode_coefficients(&values, at)?;
        self.ckks().add_plain(c, &plain.with_bound(std::f64::consts::SQRT_2 * at.max_abs))
    }

    /// Up to N integers below t that everybody knows, the rest zero, as a packed operand.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a modulus that the set has no room for, `RlweError::TooManyValues`,
    /// [`HeError::NotBelow`].
    pub fn public(&self, values: &[u64], modulus: u64) -> Result<Discrete, HeError> {
        let (params, level) = (self.params(), self.params().input_level());
        let slots = arranged(params, values, modulus, Form::Packed)?;
        let key = match self.bootstrapper().keys() {
            Some(keys) => keys.id(),
            None => return Err(RlweError::Internal { what: "an evaluator without keys" }.into()),
        };
        let known = Fresh::new(params, None, (modulus, level));
        let zero = Ciphertext::zero(self.ckks().params(), key, level, scale(params, modulus, level))?;
        let one = |slots| self.ckks().add_plain(&zero, &known.encode(params, slots)?);
        let parts = slots.iter().map(one).collect::<Result<_, _>>()?;
        let padded = if values.len() < params.params().degree() { Some(0) } else { None };
        let all = || values.iter().copied().chain(padded).map(|x| x as i64);
        let range = (all().min().unwrap_or(0), all().max().unwrap_or(0));
        Discrete::new("public integers", parts, modulus, range, known.errors)
    }

    /// The slots rotated left by `steps`: integer i gets what i + steps held, in each half of the N integers apart.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; `RlweError::MissingRotationKey` without the key ([`Evaluator::with_keys`]), `RlweError::NoSuchLevel` for one
    /// that does not reach the level.
    pub fn rotate(&self, a: &Discrete, steps: i64) -> Result<Discrete, HeError> {
        let operation = "rotation of integers";
        self.check(a)?;
        let ckks = match &self.turning {
            Some(with_keys) => with_keys,
            None => self.ckks(),
        };
        let errors = rotated(self.params(), (a.modulus, a.level()), a.errors);
        check_error(operation, errors.bound, a.level())?;
        let parts = a.parts.iter().map(|c| ckks.rotate(c, steps)).collect::<Result<_, _>>()?;
        Discrete::new(operation, parts, a.modulus, a.range, errors)
    }

    /// −a.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn negate(&self, a: &Discrete) -> Result<Discrete, HeError> {
        self.mul_integer(a, -1)
    }

    /// The same integers modulo a divisor t' of t.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; `RlweError::Parameters` where t' is no divisor of t from 2 up.
    pub fn modulo(&self, a: &Discrete, modulus: u64) -> Result<Discrete, HeError> {
        self.check(a)?;
        let known = a.known().modulo(self.params(), modulus)?;
        let factor = (a.modulus / modulus) as i64;
        let parts = a.parts.iter().map(|c| self.ckks().refine(c, factor)).collect::<Result<_, _>>()?;
        Discrete::of("a smaller modulus", parts, known)
    }

    /// a · b of split values, one level lower.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; `RlweError::Operands` for packed values, `RlweError::OutOfLevels` at the level where tables begin:
    /// take [`Evaluator::refresh`].
    pub fn mul(&self, a: &Discrete, b: &Discrete) -> Result<Discrete, HeError> {
        let operation = "product of integers";
        self.check_alike(operation, a, b)?;
        self.check_split(operation, a)?;
        let level = a.level().min(b.level());
        self.check_above(operation, level)?;
        let ends = [a.range.0 * b.range.0, a.range.0 * b.range.1, a.range.1 * b.range.0, a.range.1 * b.range.1];
        let (left, right) = (self.lower(a, level)?, self.lower(b, level)?);
        // Errors have imaginary parts of the same size.
        let linear = right.errors.times(a.largest()).plus(left.errors.times(b.largest()));
        let errors =
            linear.plus(left.errors.product(right.errors).times(2.0)).plus(self.product_errors(a.modulus, level));
        check_error(operation, errors.bound, level)?;
        let product = |(x, y): (&Ciphertext, &Ciphertext)| self.ckks().mul_rescale(x, y);
        let parts = left.parts.iter().zip(&right.parts).map(product).collect::<Result<Vec<_>, _>>()?;
        let range = ends.iter().fold((i64::MAX, i64::MIN), |(low, high), e| (low.min(*e), high.max(*e)));
        Discrete::new(operation, self.at_scale(parts, a.modulus), a.modulus, range, errors)
    }

    /// What a product at a level adds to the errors.
    fn product_errors(&self, modulus: u64, level: usize) -> Errors {
        let sketch = &self.params().layout().chain;
        let (degree, scale) = (sketch.degree(), scale(self.params(), modulus, level - 1));
        let relinearised = Errors::of_noise(degree, &sketch.relinearisation(level), scale * sketch.q()[level]);
        relinearised.plus(Errors::of_noise(degree, &sketch.division(2), scale))
    }

    /// Ciphertexts whose scale is that of their level, but for double precision.
    fn at_scale(&self, mut parts: Vec<Ciphertext>, modulus: u64) -> Vec<Ciphertext> {
        parts.iter_mut().for_each(|c| c.scale = scale(self.params(), modulus, c.level()));
        parts
    }

    /// The same integers at a lower level of split values.
    pub(super) fn lower(&self, a: &Discrete, level: usize) -> Result<Discrete, HeError> {
        let operation = "dropping levels";
        if a.level() == level {
            return Ok(a.clone());
        }
        let wanted = scale(self.params(), a.modulus, level);
        let sketch = &self.params().layout().chain;
        // The constant that brings the scale about is rounded.
        let constant = |c: &Ciphertext| wanted / c.scale() * sketch.q()[level + 1];
        let rounding = a.parts.iter().map(|c| a.largest() / constant(c)).fold(0.0, f64::max);
        let divided = Errors::of_noise(sketch.degree(), &sketch.division(2), wanted);
        let errors = a.errors.plus(divided).plus(Errors::within(rounding));
        check_error(operation, errors.bound, level)?;
        let one = |c: &Ciphertext| self.ckks().set_scale(&self.ckks().drop_to(c, level + 1)?, wanted);
        let parts = a.parts.iter().map(one).collect::<Result<_, HeError>>()?;
        Discrete::new(operation, parts, a.modulus, a.range, errors)
    }

    /// f(x) for every integer: [`Evaluator::tables`].
    ///
    /// # Errors
    /// As there.
    pub fn table(&self, x: &Discrete, table: &Table) -> Result<Discrete, HeError> {
        only(self.tables(x, std::slice::from_ref(table))?)
    }

    /// Several functions of the same integers by one bootstrap, in the form that x has: packed results stand where tables begin
    /// again, split ones have all levels.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`; [`HeError::TableLength`] for a table that has not t values;
    /// `RlweError::Parameters` for results of a modulus that the set has no room for; `RlweError::NoBudget` where x has an
    /// error with which a result could be wrong.
    pub fn tables(&self, x: &Discrete, tables: &[Table]) -> Result<Vec<Discrete>, HeError> {
        only(self.tables_many(&[x], tables, x.form())?)
    }

    /// [`Evaluator::tables`] of several values of one modulus and form, each key and diagonal read once for all, with results in
    /// any form.
    ///
    /// # Errors
    /// As there; `RlweError::WrongPlainModulus`, `RlweError::Operands` for values that differ in modulus or form.
    pub fn tables_many(
        &self,
        values: &[&Discrete],
        tables: &[Table],
        form: Form,
    ) -> Result<Vec<Vec<Discrete>>, HeError> {
        let [first, ..] = values else { return Ok(Vec::new()) };
        values.iter().try_for_each(|x| self.check_alike(OPERATION, first, x))?;
        self.check_tables(first.modulus, tables)?;
        // A table of one value needs no bootstrap.
        if tables.iter().all(|t| t.is_constant()) {
            let key = first.key();
            return values.iter().map(|_| tables.iter().map(|t| self.known(key, t, form)).collect()).collect();
        }
        let inputs = self.lowered(values)?;
        let errors = inputs.iter().map(|x| self.coefficient_errors(x)).fold(Errors::NONE, Errors::larger);
        let plan = self.planned((first.modulus, errors), tables, form)?;
        let coefficients = self.moved(&inputs)?;
        self.run(&plan, &coefficients.iter().collect::<Vec<_>>(), tables, form)
    }

    /// Several functions of the same integers by one bootstrap that begins at their coefficients, of several values of one modulus
    /// together.
    ///
    /// # Errors
    /// As [`Evaluator::tables_many`].
    pub fn tables_of(
        &self,
        values: &[&Coefficients],
        tables: &[Table],
        form: Form,
    ) -> Result<Vec<Vec<Discrete>>, HeError> {
        let [first, ..] = values else { return Ok(Vec::new()) };
        for x in values {
            self.check_coefficients("coefficients", x)?;
            if x.modulus != first.modulus {
                let (found, expected) = (x.modulus, first.modulus);
                return Err(HeError::Rlwe(RlweError::WrongPlainModulus {
                    what: "the second operand",
                    found,
                    expected,
                }));
            }
            if x.unit != first.unit {
                return Err(parameters(format!(
                    "coefficients with the factors {} and {} do not go together; compute those of each factor on \
                     their own",
                    first.unit, x.unit
                )));
            }
        }
        self.check_tables(first.modulus, tables)?;
        let tables = &tables.iter().map(|table| table.of_multiples(first.unit)).collect::<Result<Vec<_>, _>>()?;
        let errors = values.iter().map(|x| x.errors).fold(Errors::NONE, Errors::larger);
        let plan = self.planned((first.modulus, errors), tables, form)?;
        self.run(&plan, &values.iter().map(|x| &x.inner).collect::<Vec<_>>(), tables, form)
    }

    /// The tables that have more than one value, planned for integers modulo t with errors in their coefficients: refused where a
    /// result could be wrong.
    fn planned(&self, (modulus, errors): (u64, Errors), tables: &[Table], form: Form) -> Result<Planned, HeError> {
        let level = self.level_of(form);
        let output =
            |t: &Table| TableOutput { table: t.interpolation.clone(), scale: scale(self.params(), t.output, level) };
        let outputs: Vec<TableOutput> = tables.iter().filter(|t| !t.is_constant()).map(output).collect();
        if outputs.is_empty() {
            return Ok(Planned { outputs, tables: None });
        }
        let input = TableInput { modulus: modulus as usize, angle: errors.times(1.0 / modulus as f64) };
        let planned = self.bootstrapper.plan_tables(input, &outputs)?;
        planned.errors.iter().try_for_each(|errors| check_error(OPERATION, errors.bound, level))?;
        Ok(Planned { outputs, tables: Some(planned) })
    }

    /// Results of planned tables, of several values in coefficients.
    fn run(
        &self,
        plan: &Planned,
        values: &[&rlwe::Ciphertext],
        tables: &[Table],
        form: Form,
    ) -> Result<Vec<Vec<Discrete>>, HeError> {
        let level = self.level_of(form);
        let found = match &plan.tables {
            Some(planned) => self.bootstrapper.run_tables(values, planned, form == Form::Split)?,
            None => vec![Vec::new(); values.len()],
        };
        let missing = || HeError::from(RlweError::Internal { what: "a table without a value" });
        let one = |(found, value): (Vec<Vec<rlwe::Ciphertext>>, &&rlwe::Ciphertext)| {
            let errors = plan.tables.iter().flat_map(|planned| &planned.errors);
            let mut computed = found.into_iter().zip(&plan.outputs).zip(errors);
            let result = |table: &Table| {
                if table.is_constant() {
                    return self.known(value.key(), table, form);
                }
                let ((parts, output), errors) = computed.next().ok_or_else(missing)?;
                let parts = parts.into_iter().map(|made| self.refreshed(&made, level, output.scale));
                let parts = parts.collect::<Result<_, _>>()?;
                Discrete::new(OPERATION, parts, table.output, table.range(), *errors)
            };
            tables.iter().map(result).collect()
        };
        found.into_iter().zip(values).map(one).collect()
    }

    /// Refuses tables that are not of integers modulo t, or have results that the set has no room for.
    fn check_tables(&self, modulus: u64, tables: &[Table]) -> Result<(), HeError> {
        for table in tables {
            check_modulus(self.params(), table.output)?;
            if table.modulus() != modulus {
                return Err(HeError::TableLength { found: table.values.len(), modulus });
            }
        }
        Ok(())
    }

    /// Where results of tables are.
    fn level_of(&self, form: Form) -> usize {
        match form {
            Form::Packed => self.params().input_level(),
            Form::Split => self.params().output_level(),
        }
    }

    /// A result of a bootstrap at a level. Bound and noise are the value's.
    fn refreshed(&self, made: &rlwe::Ciphertext, level: usize, scale: f64) -> Result<Ciphertext, HeError> {
        let inner = self.ckks().inner.drop_to(made, level)?;
        Ok(Ciphertext::new(inner, State { scale, bound: 0.0, noise: 0.0 }))
    }

    /// The same integers with a fresh error and, split, all levels.
    ///
    /// # Errors
    /// As [`Evaluator::tables`].
    pub fn refresh(&self, x: &Discrete) -> Result<Discrete, HeError> {
        self.table(x, &Table::of(x.modulus, x.modulus, |x| x)?)
    }

    /// The value of a table that has but one, for every integer.
    fn known(&self, key: KeyId, table: &Table, form: Form) -> Result<Discrete, HeError> {
        let ((value, _), level) = (table.range(), self.level_of(form));
        let count = if form == Form::Packed { 1 } else { 2 };
        let zero = Ciphertext::zero(self.ckks().params(), key, level, scale(self.params(), table.output, level))?;
        let parts = (0..count).map(|_| self.constant(&zero, value, form)).collect::<Result<_, _>>()?;
        Discrete::new(OPERATION, parts, table.output, (value, value), Errors::NONE)
    }

    /// g(a, b) of bits: [`Evaluator::gates`].
    ///
    /// # Errors
    /// As there.
    pub fn gate(&self, gate: Gate, a: &Discrete, b: &Discrete) -> Result<Discrete, HeError> {
        only(self.gates(&[gate], a, b)?)
    }

    /// Several gates of the same bits. Of packed bits they take one bootstrap together, or two where some depend on a + b and
    /// others on a − b; split ones take a product and a level.
    ///
    /// # Errors
    /// As [`Evaluator::tables`] and [`Evaluator::mul`]; `RlweError::Parameters` for values that are no bits, and for packed ones
    /// whose modulus is no multiple of 4.
    pub fn gates(&self, gates: &[Gate], a: &Discrete, b: &Discrete) -> Result<Vec<Discrete>, HeError> {
        let operation = "a gate";
        self.check_alike(operation, a, b)?;
        a.known().check_bits(b.known())?;
        match a.form() {
            Form::Split => gates.iter().map(|gate| self.split_gate(*gate, a, b)).collect(),
            Form::Packed => self.packed_gates(gates, a, b),
        }
    }

    fn packed_gates(&self, gates: &[Gate], a: &Discrete, b: &Discrete) -> Result<Vec<Discrete>, HeError> {
        if gates.iter().any(|gate| !gate.is_free()) {
            a.known().check_packed()?;
        }
        let mut results: Vec<Option<Discrete>> = Vec::new();
        for gate in gates {
            results.push(match gate.input() {
                Input::Free { constant, a: x, b: y } => Some(self.free_gate([constant, x, y], a, b)?),
                _ => None,
            });
        }
        for sum in [true, false] {
            let of = |gate: &Gate| match (gate.input(), sum) {
                (Input::Sum(f), true) | (Input::Difference(f), false) => Some(f),
                _ => None,
            };
            let wanted: Vec<(usize, [u64; 4])> =
                gates.iter().enumerate().filter_map(|(i, gate)| of(gate).map(|f| (i, f))).collect();
            if wanted.is_empty() {
                continue;
            }
            let x = if sum { self.add(a, b)? } else { self.add_integer(&self.sub(a, b)?, 1)? };
            let tables = wanted.iter().map(|(_, f)| Table::new(f, a.modulus)).collect::<Result<Vec<_>, _>>()?;
            for ((i, _), value) in wanted.iter().zip(self.tables(&self.modulo(&x, 4)?, &tables)?) {
                results[*i] = Some(value);
            }
        }
        let missing = RlweError::Internal { what: "a gate without a value" };
        results.into_iter().map(|value| value.ok_or_else(|| missing.clone().into())).collect()
    }

    /// c_0 + c_1·a + c_2·b, one of which is zero.
    fn free_gate(&self, [constant, x, y]: [i64; 3], a: &Discrete, b: &Discrete) -> Result<Discrete, HeError> {
        let (operand, factor) = if y == 0 { (a, x) } else { (b, y) };
        let multiple = self.multiple(operand, factor)?;
        let parts = multiple.iter().map(|c| self.constant(c, constant, a.form())).collect::<Result<_, _>>()?;
        Discrete::new("a gate", parts, a.modulus, (0, 1), operand.errors.times(factor.unsigned_abs() as f64))
    }

    /// c_0 + c_1·a + c_2·b + c_3·ab. Its derivative by each bit is −1, 0 or 1, whatever the bits are.
    fn split_gate(&self, gate: Gate, a: &Discrete, b: &Discrete) -> Result<Discrete, HeError> {
        let operation = "a gate";
        let [c0, c1, c2, c3] = gate.polynomial();
        if c3 == 0 && (c1 == 0 || c2 == 0) {
            return self.free_gate([c0, c1, c2], a, b);
        }
        let level = a.level().min(b.level());
        self.check_above(operation, level)?;
        let (left, right) = (self.lower(a, level - 1)?, self.lower(b, level - 1)?);
        let own = a.errors.product(b.errors).times(2.0).plus(self.product_errors(a.modulus, level));
        let errors = left.errors.plus(right.errors).plus(own.times(c3.unsigned_abs() as f64));
        check_error(operation, errors.bound, level - 1)?;
        let mut sum = self.multiple(&self.mul(a, b)?, c3)?;
        for (operand, factor) in [(&left, c1), (&right, c2)] {
            let multiple = self.multiple(operand, factor)?;
            for (x, y) in sum.iter_mut().zip(&multiple) {
                self.ckks().add_assign(x, y)?;
            }
        }
        let parts = sum.iter().map(|c| self.constant(c, c0, Form::Split)).collect::<Result<_, _>>()?;
        Discrete::new(operation, parts, a.modulus, (0, 1), errors)
    }

    /// A multiple as it is, whatever the modulus.
    fn multiple(&self, a: &Discrete, k: i64) -> Result<Vec<Ciphertext>, HeError> {
        a.parts.iter().map(|c| self.ckks().mul_integer(c, k)).collect()
    }

    pub(super) fn check(&self, a: &Discrete) -> Result<(), HeError> {
        a.parts.iter().try_for_each(|c| self.ckks().check(c))
    }

    fn check_alike(&self, operation: &'static str, a: &Discrete, b: &Discrete) -> Result<(), HeError> {
        self.check(a)?;
        self.check(b)?;
        a.known().alike(b.known())?;
        if a.form() != b.form() {
            return Err(RlweError::Operands { operation, left: a.parts.len(), right: b.parts.len() }.into());
        }
        Ok(())
    }

    fn check_split(&self, operation: &'static str, a: &Discrete) -> Result<(), HeError> {
        match a.form() {
            Form::Split => Ok(()),
            Form::Packed => Err(RlweError::Operands { operation, left: 2, right: 1 }.into()),
        }
    }

    /// Refuses a product at the level where tables begin.
    fn check_above(&self, operation: &'static str, level: usize) -> Result<(), HeError> {
        let needed = self.params().input_level() + 1;
        if level < needed { Err(RlweError::OutOfLevels { operation, needed, level }.into()) } else { Ok(()) }
    }
}

/// Bound on the error of a slot of a plaintext.
fn encoding_error(params: &BootstrapParams, at: EncodeAt) -> f64 {
    let rounding = params.params().sketch().rounding().bound(&NEGLIGIBLE);
    rounding / at.scale + at.max_abs * (params.params().degree() as f64).log2() * f64::EPSILON
}

/// The only one.
fn only<T>(values: Vec<T>) -> Result<T, HeError> {
    values.into_iter().next().ok_or(RlweError::Internal { what: "a table without a value" }.into())
}
