//! Circuit bootstrapping: the trace, the scheme switch, and products by what comes out.

use super::Tally;
use super::support::{context, key, mean_square, streams, words};
use sudare_ring::random::{Entropy, ObjectSeeds, Seed};
use sudare_tfhe::circuit_bootstrap::{
    CircuitKey, CircuitLiteral, PrivateSwitchKey, SchemeSwitchKey, TraceKey, variance as formulas,
};
use sudare_tfhe::leveled::Selector;
use sudare_tfhe::*;

const GADGET: Gadget = Gadget { base_log: 11, levels: 4 };

/// The constant coefficient, of which there is one a trace, and all together.
pub fn trace(number: u64, tally: &mut Tally) -> Result<(), TfheError> {
    let context = context(47, 1, SecretKind::Binary);
    let (q, n, rounds) = (context.q(), context.degree(), 128);
    let (key, seed) = key(&context, number);
    let trace = TraceKey::generate(&key, GADGET, &ObjectSeeds::derive(&seed, "trace", 0))?;
    let (mut constant, mut energy) = (0.0, 0.0);
    for i in 0..rounds {
        let c = GlweCiphertext::from_words(&context, &words(&seed, i, q, 2 * n))?;
        let mut expected = vec![0; n];
        expected[0] = key.phase(&c)?[0];
        let phase = key.phase(&trace.constant(&c)?)?;
        constant += mean_square(q, &phase[..1], &expected[..1]);
        energy += n as f64 * mean_square(q, &phase, &expected);
    }
    let mut note = |what, sum: f64, predicted: f64, each| {
        tally.note(what, sum / rounds as f64 / predicted, rounds as usize * each);
    };
    note("trace, constant coefficient", constant, formulas::trace_constant(&context, GADGET), 1);
    note("trace, all coefficients", energy, formulas::trace_energy(&context, GADGET), n);
    Ok(())
}

/// What the key adds to the rows of the mask. The rows of the body are what went in.
pub fn scheme_switch(number: u64, tally: &mut Tally) -> Result<(), TfheError> {
    let cases = [(GADGET, SecretKind::Binary), (Gadget { base_log: 15, levels: 2 }, SecretKind::Binary)];
    for (gadget, secret) in cases {
        let (context, output) = (context(47, 1, secret), Gadget { base_log: 20, levels: 1 });
        let (q, n, rounds) = (context.q(), context.degree(), 24);
        let (key, seed) = key(&context, number);
        let scheme = SchemeSwitchKey::generate(&key, gadget, &ObjectSeeds::derive(&seed, "scheme", 0))?;
        let (mut masks, mut errors) = streams(&seed, 0);
        let mut sum = 0.0;
        for i in 0..rounds {
            let c = key.encrypt(&words(&seed, i, q, n), &mut masks, &mut errors)?;
            let ggsw = scheme.switch(std::slice::from_ref(&c), output)?;
            // The row of the mask is an encryption of −S·phase.
            let phase = key.phase(&c)?;
            let product = GlweCiphertext::from_words(&context, &[phase.to_vec(), vec![0; n]].concat())?;
            sum += mean_square(q, &key.phase(&row(&context, &ggsw, 0)?)?, &key.phase(&product)?);
        }
        let predicted = formulas::scheme_switch(&context, gadget);
        let what = format!("scheme switch, {}x{}", gadget.base_log, gadget.levels);
        tally.note(what, sum / rounds as f64 / predicted, rounds as usize * n);
    }
    Ok(())
}

/// A row of a selector of one level and one mask.
pub fn row(context: &GlweContext, ggsw: &GgswCiphertext, row: usize) -> Result<GlweCiphertext, TfheError> {
    let n = context.degree();
    let mut words = vec![0; 2 * n];
    for (column, p) in words.chunks_exact_mut(n).enumerate() {
        ggsw.matrix().get(0, row, column, p);
        context.limb().inverse(p);
    }
    GlweCiphertext::from_words(context, &words)
}

/// Products by bootstrapped selectors, with and without the rotation's noise in charge, and by classical ones. A
/// bootstrap's largest error is one number, common to a whole product.
pub fn products(number: u64, tally: &mut Tally) -> Result<(), TfheError> {
    let mut small = CircuitLiteral::insecure_test();
    // The first step of a rotation, whose masks are zero still, adds less: enough others that it does not matter.
    small.tfhe.lwe_dimension = 160;
    let sets = [
        ("trace in charge", CircuitLiteral { trace_digits: (13, 3), ..small.clone() }),
        ("rotation in charge", CircuitLiteral { output_digits: (4, 4), trace_digits: (7, 6), ..small }),
    ];
    for (name, set) in sets {
        let (params, gadget) = (set.build()?, Gadget { base_log: 12, levels: 2 });
        let seed = Seed::from_bytes([13; 32]).derive("circuit", number);
        let client = ClientKey::from_seed(params.tfhe(), &seed)?.with_entropy(Entropy::fixed(seed.derive("fresh", 0)));
        let key = CircuitKey::generate(&params, &client)?;
        let private = PrivateSwitchKey::generate(client.glwe(), gadget, &client.object_seeds()?)?;
        let (context, q) = (params.context(), params.context().q());
        let n = context.degree();
        let noise = |selector: &Selector, c: &GlweCiphertext| {
            let found = client.glwe().phase(&selector.ggsw().external_product(c)?)?;
            Ok::<f64, TfheError>(mean_square(q, &found, &client.glwe().phase(c)?))
        };
        let (mut sum, mut classical, rounds) = (0.0, 0.0, 10);
        for i in 0..rounds {
            let c = GlweCiphertext::from_words(context, &words(&seed, i, q, 2 * n))?;
            let bit = client.encrypt_bit(true)?;
            sum += noise(&key.bootstrap(&bit)?, &c)?;
            classical += noise(&key.bootstrap_classical(&bit, &private)?, &c)?;
        }
        let mut note = |what: &str, sum: f64, predicted: f64| {
            tally.note(format!("{what}, {name}"), sum / rounds as f64 / predicted, rounds as usize * n);
        };
        note("product by a circuit bootstrap", sum, params.selector_noise().expected());
        let rotation = params.rotation_variance();
        let expected = formulas::classical(context, params.output_gadget(), gadget, rotation).expected();
        note("product by a classical circuit bootstrap", classical, expected);
    }
    Ok(())
}
