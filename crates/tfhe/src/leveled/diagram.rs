//! Decision diagrams: public functions of encrypted bits, one product a node.
//!
//! A node of variable v stands for `low + w_v·(high − low)`, where low and high are values of later variables or
//! public terminals. Values are computed from the last variable to the first (Chillotti, Gama, Georgieva and
//! Izabachène, 2018/421, section 5.2: deterministic automata), so a selector is read once for all nodes of its
//! variable. Two nodes with low and high exchanged share their product.

use super::ciphertext::{LeveledGlwe, Selector, meet};
use super::{LeveledParams, LeveledServer};
use crate::core::context::check_shape;
use crate::core::ggsw::evaluate_digits;
use crate::{GlweCiphertext, TfheError};
use std::fmt;
use sudare_ring::buffer::Buffer;
use sudare_ring::threads;

/// The value of a node or a terminal, as a number: terminals have the highest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);

/// The bit of terminals.
const TERMINAL: u32 = 1 << 31;

impl Value {
    /// A terminal. The number is below 2^31.
    pub const fn terminal(number: u32) -> Self {
        Self(number | TERMINAL)
    }

    /// Of a product of (low, high): that of the node itself, or of the node with both exchanged. The number is
    /// below 2^30.
    pub const fn of_product(number: u32, exchanged: bool) -> Self {
        Self(2 * number + exchanged as u32)
    }

    /// The number of a terminal.
    pub const fn as_terminal(self) -> Option<u32> {
        if self.0 & TERMINAL != 0 { Some(self.0 & !TERMINAL) } else { None }
    }

    /// The number of a product, and whether low and high are exchanged.
    pub const fn as_product(self) -> Option<(u32, bool)> {
        if self.0 & TERMINAL == 0 { Some((self.0 / 2, self.0 & 1 == 1)) } else { None }
    }

    /// As it is stored.
    pub const fn code(self) -> u32 {
        self.0
    }

    /// From what was stored.
    pub const fn from_code(code: u32) -> Self {
        Self(code)
    }
}

/// A decision diagram over a number of variables and terminals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagram {
    /// Products (low, high), those of the last variable first.
    products: Vec<[Value; 2]>,
    /// Products of each variable, the last variable first.
    counts: Vec<u32>,
    terminals: u32,
    root: Value,
}

impl Diagram {
    /// A diagram from its products (low, high), those of the last variable first, and how many each variable has.
    ///
    /// # Errors
    /// [`TfheError::Shape`] unless each value stands before those that use it and belongs to a later variable.
    pub fn new(products: Vec<[Value; 2]>, counts: Vec<u32>, terminals: u32, root: Value) -> Result<Self, TfheError> {
        let all = counts.iter().map(|c| u64::from(*c)).sum::<u64>();
        check_shape("products of the variables", products.len(), usize::try_from(all).unwrap_or(usize::MAX))?;
        if products.len() > 1 << 30 || terminals >= TERMINAL {
            return Err(TfheError::Shape { what: "products", expected: 1 << 30, found: products.len() });
        }
        let refuse = |limit: usize, found: u32| TfheError::Shape {
            what: "the number of a value",
            expected: limit.saturating_sub(1),
            found: found as usize,
        };
        let check = |v: Value, before: usize| match (v.as_terminal(), v.as_product()) {
            (Some(t), _) if t >= terminals => Err(refuse(terminals as usize, t)),
            (_, Some((p, _))) if p as usize >= before => Err(refuse(before, p)),
            _ => Ok(()),
        };
        let (mut at, mut before) = (0, 0);
        for count in &counts {
            for pair in &products[at..at + *count as usize] {
                pair.iter().try_for_each(|v| check(*v, before))?;
            }
            at += *count as usize;
            before = at;
        }
        check(root, before)?;
        Ok(Self { products, counts, terminals, root })
    }

    /// Products: external products that an evaluation takes.
    pub fn products(&self) -> &[[Value; 2]] {
        &self.products
    }

    /// Products of each variable, the last variable first.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Variables.
    pub fn variables(&self) -> usize {
        self.counts.len()
    }

    /// Terminals.
    pub fn terminals(&self) -> u32 {
        self.terminals
    }

    /// The value of the whole.
    pub fn root(&self) -> Value {
        self.root
    }

    /// The terminal for plain values of the variables, the first variable first.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for another number of them.
    pub fn evaluate_plain(&self, bits: &[bool]) -> Result<u32, TfheError> {
        check_shape("variables", self.variables(), bits.len())?;
        // Where the products of a variable end, the last variable first.
        let mut value = self.root;
        let mut ends = Vec::with_capacity(self.counts.len());
        let mut sum = 0;
        for count in &self.counts {
            sum += *count;
            ends.push(sum);
        }
        loop {
            if let Some(terminal) = value.as_terminal() {
                return Ok(terminal);
            }
            let Some((product, exchanged)) = value.as_product() else {
                unreachable!("what is no terminal is a product")
            };
            let from_last = ends.partition_point(|end| *end <= product);
            let bit = bits[bits.len() - 1 - from_last];
            value = self.products[product as usize][usize::from(bit ^ exchanged)];
        }
    }

    /// Bound of the noise variance of the root where a product with the selector of variable v adds `adds[v]`.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for another number of variables.
    pub fn variance(&self, adds: &[f64]) -> Result<f64, TfheError> {
        check_shape("variables", self.variables(), adds.len())?;
        let mut variances: Vec<f64> = Vec::with_capacity(self.products.len());
        let of = |variances: &[f64], v: Value| v.as_product().map_or(0.0, |(p, _)| variances[p as usize]);
        for (count, add) in self.counts.iter().zip(adds.iter().rev()) {
            for _ in 0..*count {
                let [low, high] = self.products[variances.len()];
                variances.push(of(&variances, low).max(of(&variances, high)) + add);
            }
        }
        Ok(of(&variances, self.root))
    }

    /// Products on the longest path.
    pub fn depth(&self) -> usize {
        self.variance(&vec![1.0; self.variables()]).map_or(0, |d| d as usize)
    }
}

/// What a value is while a diagram is evaluated.
#[derive(Clone, Copy)]
enum Operand<'a> {
    Public(&'a [u64]),
    Encrypted(&'a GlweCiphertext),
}

/// The two values of a product, as far as they are used.
type Both = [Option<GlweCiphertext>; 2];

/// Values under way.
struct Values<'a> {
    diagram: &'a Diagram,
    terminals: &'a [Vec<u64>],
    done: Vec<Both>,
    /// The variable, counted from the last, at which a product's values are used last.
    last_use: Vec<u32>,
    /// Which of a product's values are used.
    used: Vec<[bool; 2]>,
}

impl<'a> Values<'a> {
    fn new(diagram: &'a Diagram, terminals: &'a [Vec<u64>]) -> Self {
        let count = diagram.products.len();
        let (mut last_use, mut used) = (vec![0u32; count], vec![[false; 2]; count]);
        let mut note = |v: Value, variable: u32| {
            if let Some((p, exchanged)) = v.as_product() {
                used[p as usize][usize::from(exchanged)] = true;
                last_use[p as usize] = last_use[p as usize].max(variable);
            }
        };
        let mut at = 0;
        for (variable, count) in diagram.counts.iter().enumerate() {
            for pair in &diagram.products[at..at + *count as usize] {
                pair.iter().for_each(|v| note(*v, variable as u32));
            }
            at += *count as usize;
        }
        note(diagram.root, u32::MAX);
        Self { diagram, terminals, done: vec![[None, None]; count], last_use, used }
    }

    fn operand(&self, v: Value) -> Operand<'_> {
        match (v.as_terminal(), v.as_product()) {
            (Some(t), _) => Operand::Public(&self.terminals[t as usize]),
            (None, Some((p, exchanged))) => match &self.done[p as usize][usize::from(exchanged)] {
                Some(c) => Operand::Encrypted(c),
                // Values are kept until their last use.
                None => Operand::Public(&[]),
            },
            (None, None) => Operand::Public(&[]),
        }
    }
}

impl LeveledServer {
    /// The diagram's terminal for the encrypted bits, as a ciphertext: a terminal is the messages of the first
    /// coefficients. Products of a variable run in parallel inside a thread pool.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for another number of selectors than variables or of terminals;
    /// [`TfheError::LeveledNoise`] before any work if the result could decrypt wrongly;
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, [`TfheError::Message`].
    pub fn evaluate(
        &self,
        diagram: &Diagram,
        terminals: &[Vec<u64>],
        selectors: &[Selector],
    ) -> Result<LeveledGlwe, TfheError> {
        check_shape("variables", diagram.variables(), selectors.len())?;
        check_shape("terminals", diagram.terminals as usize, terminals.len())?;
        let mut owner = (self.params().hash(), None);
        for selector in selectors {
            owner = meet("a selector", owner, selector.as_owner())?;
        }
        let adds: Vec<f64> = selectors.iter().map(|s| s.noise().bound()).collect();
        let variance = diagram.variance(&adds)?;
        self.params().check_variance("decision diagram", variance)?;
        let terminals = terminals.iter().map(|t| phases(self.params(), t)).collect::<Result<Vec<_>, _>>()?;
        let mut values = Values::new(diagram, &terminals);
        let mut first = 0;
        let mut alive: Vec<usize> = Vec::new();
        for ((variable, count), selector) in diagram.counts.iter().enumerate().zip(selectors.iter().rev()) {
            let count = *count as usize;
            let made = threads::map(count, |i| self.node(&values, first + i, selector));
            for (i, both) in made.into_iter().enumerate() {
                values.done[first + i] = both;
            }
            alive.retain(|p| {
                let keep = values.last_use[*p] > variable as u32;
                if !keep {
                    values.done[*p] = [None, None];
                }
                keep
            });
            alive.extend(first..first + count);
            first += count;
        }
        let c = match values.operand(diagram.root) {
            Operand::Public(phases) => GlweCiphertext::trivial(self.params().context(), phases)?,
            Operand::Encrypted(c) => c.clone(),
        };
        Ok(LeveledGlwe { c, variance, owner })
    }

    /// The product of a node, and from it the values that are used: `low + P` and `high − P`.
    fn node(&self, values: &Values<'_>, product: usize, selector: &Selector) -> Both {
        let [low, high] = values.diagram.products[product];
        let (low, high) = (values.operand(low), values.operand(high));
        let p = self.product_of_difference(selector, low, high);
        let [straight, exchanged] = values.used[product];
        let limb = self.params().context().limb();
        let n = self.params().context().lwe_dimension();
        let mut sum = straight.then(|| p.clone());
        if let Some(c) = &mut sum {
            match low {
                Operand::Public(phases) => limb.add_assign(&mut c.words_mut()[n..], phases),
                Operand::Encrypted(low) => limb.add_assign(c.words_mut(), low.words()),
            }
        }
        let mut difference = exchanged.then_some(p);
        if let Some(c) = &mut difference {
            limb.neg_assign(c.words_mut());
            match high {
                Operand::Public(phases) => limb.add_assign(&mut c.words_mut()[n..], phases),
                Operand::Encrypted(high) => limb.add_assign(c.words_mut(), high.words()),
            }
        }
        [sum, difference]
    }

    /// The external product of the selector and `high − low`.
    fn product_of_difference(&self, selector: &Selector, low: Operand<'_>, high: Operand<'_>) -> GlweCiphertext {
        let (context, ggsw) = (self.params().context(), selector.ggsw());
        let (n, masks, limb) = (context.degree(), context.lwe_dimension(), context.limb());
        let mut difference = Buffer::dirty(context.words());
        let (mask, body) = difference.split_at_mut(masks);
        match (low, high) {
            (Operand::Public(low), Operand::Public(high)) => limb.sub(body, high, low),
            (Operand::Public(low), Operand::Encrypted(high)) => {
                mask.copy_from_slice(&high.words()[..masks]);
                limb.sub(body, high.body(), low);
            }
            (Operand::Encrypted(low), Operand::Public(high)) => {
                mask.copy_from_slice(&low.words()[..masks]);
                limb.neg_assign(mask);
                limb.sub(body, high, low.body());
            }
            (Operand::Encrypted(low), Operand::Encrypted(high)) => limb.sub(&mut difference, high.words(), low.words()),
        }
        let mut digits = Buffer::dirty(ggsw.matrix().rows() * n);
        if matches!((low, high), (Operand::Public(_), Operand::Public(_))) {
            // Only the body has digits.
            let at = masks * ggsw.gadget().levels as usize;
            digits[..at].fill(0);
            evaluate_digits(context, ggsw.gadget(), &difference[masks..], &mut digits[at..]);
        } else {
            evaluate_digits(context, ggsw.gadget(), &difference, &mut digits);
        }
        let mut out = GlweCiphertext::zero(context);
        limb.external_product(out.words_mut(), &digits, ggsw.matrix());
        out.words_mut().chunks_exact_mut(n).for_each(|p| limb.inverse(p));
        out
    }
}

/// A terminal's messages as the phases of a polynomial.
fn phases(params: &LeveledParams, messages: &[u64]) -> Result<Vec<u64>, TfheError> {
    let n = params.context().degree();
    if messages.len() > n {
        return Err(TfheError::Shape { what: "messages of a terminal", expected: n, found: messages.len() });
    }
    let mut out = messages.iter().map(|m| params.encode(*m)).collect::<Result<Vec<_>, _>>()?;
    out.resize(n, 0);
    Ok(out)
}

impl fmt::Display for Diagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (products, variables) = (self.products.len(), self.variables());
        write!(f, "{products} products over {variables} variables, {} terminals", self.terminals)
    }
}
