//! The positional Burrows–Wheeler transform (Durbin, Bioinformatics 30 (2014), 1266–1272).

/// The order of haplotypes before the next site: by their reversed prefixes.
///
/// Column k of the transform is `Y_k[i] = h_{a_k[i]}[k]`, and a_{k+1} takes the haplotypes with a zero first, each half in
/// the order of a_k.
#[derive(Clone, Debug)]
pub struct Order {
    current: Vec<u32>,
    ones: Vec<u32>,
}

/// Words of a column of `haplotypes` bits.
pub const fn words_of(haplotypes: usize) -> usize {
    haplotypes.div_ceil(64)
}

impl Order {
    /// Before the first site: as the haplotypes came.
    pub fn new(haplotypes: usize) -> Self {
        // Panels have at most 2^24 haplotypes.
        Self { current: (0..haplotypes as u32).collect(), ones: Vec::with_capacity(haplotypes) }
    }

    /// The column of a site from the alleles of all haplotypes; the order advances.
    pub fn next(&mut self, alleles: &[bool], column: &mut [u64]) {
        column.fill(0);
        self.ones.clear();
        let mut zeros = 0;
        for i in 0..self.current.len() {
            let haplotype = self.current[i];
            if alleles[haplotype as usize] {
                column[i / 64] |= 1 << (i % 64);
                self.ones.push(haplotype);
            } else {
                self.current[zeros] = haplotype;
                zeros += 1;
            }
        }
        self.current[zeros..].copy_from_slice(&self.ones);
    }
}

/// A column with the number of ones before each word: what the search steps through.
#[derive(Clone, Debug, Default)]
pub struct Column {
    words: Vec<u64>,
    before: Vec<u32>,
    zeros: u32,
    haplotypes: u32,
}

impl Column {
    /// Takes a column over from its little-endian words.
    pub fn load(&mut self, haplotypes: usize, bytes: &[u8]) {
        self.words.clear();
        self.before.clear();
        let mut ones = 0;
        for word in bytes.as_chunks::<8>().0 {
            let word = u64::from_le_bytes(*word);
            self.words.push(word);
            self.before.push(ones);
            ones += word.count_ones();
        }
        self.haplotypes = haplotypes as u32;
        self.zeros = self.haplotypes - ones.min(self.haplotypes);
    }

    /// n.
    pub fn haplotypes(&self) -> u32 {
        self.haplotypes
    }

    /// Ones among `Y[0..i)`.
    fn ones(&self, i: u32) -> u32 {
        let (word, bit) = ((i / 64) as usize, i % 64);
        match self.words.get(word) {
            Some(w) => self.before[word] + (w & ((1 << bit) - 1)).count_ones(),
            // The end, where the last word is full.
            None => self.haplotypes - self.zeros,
        }
    }

    /// `v_0[i]`, the zeros among `Y[0..i)`, or `v_1[i]`, all zeros and the ones among `Y[0..i)`, for i up to n.
    pub fn step(&self, symbol: bool, i: u32) -> u32 {
        let ones = self.ones(i);
        if symbol { self.zeros + ones } else { i - ones }
    }

    /// The interval of the haplotypes of `[f, g)` that have this symbol here, in the order after this site.
    pub fn step_interval(&self, symbol: bool, (f, g): (u32, u32)) -> (u32, u32) {
        (self.step(symbol, f), self.step(symbol, g))
    }
}
