//! How a matrix of a context lies in its ciphertexts: in square tiles, which matrix products take, or as a table over whole
//! ciphertexts, which everything else is fastest on.

use sudare_expr::Matrix;
use sudare_he::ckks::{Ciphertext, Decrypted, EncodeAt, Encoder, Evaluator, Params, Plaintext};
use sudare_methods::MatrixError;
use sudare_methods::slots::grid::{Clean, Grid, GridLayout};
use sudare_methods::slots::tiles::TileLayout;
use sudare_ring::threads;

/// Either layout, with what is known of the slots beside the matrix.
#[derive(Clone, Copy, Debug)]
pub(super) enum Layout {
    Tiles(Tiled),
    Table(Tabled),
}

/// Square tiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiled {
    pub layout: TileLayout,
    /// Whether slots beside the tile hold zeros; a matrix product leaves copies there.
    pub clean: bool,
}

/// Tiles that fill their ciphertexts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tabled {
    pub layout: GridLayout,
    pub clean: Clean,
}

impl Tiled {
    /// A layout whose slots beside the tiles hold zeros.
    pub fn zero_padded(layout: TileLayout) -> Layout {
        Layout::Tiles(Self { layout, clean: true })
    }
}

impl Tabled {
    /// A layout with zeros beside the table.
    pub fn zero_padded(layout: GridLayout) -> Layout {
        Layout::Table(Self { layout, clean: Clean::ALL })
    }

    /// How a table lies, and its tiles.
    pub fn of(grid: Grid<'_>) -> (Layout, Vec<Ciphertext>) {
        (Layout::Table(Self { layout: grid.layout, clean: grid.clean }), grid.tiles.into_owned())
    }
}

impl Layout {
    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            Self::Tiles(t) => (t.layout.rows, t.layout.cols),
            Self::Table(t) => t.layout.shape(),
        }
    }

    /// Number of ciphertexts.
    pub fn ciphertexts(&self) -> usize {
        match self {
            Self::Tiles(t) => t.layout.ciphertexts(),
            Self::Table(t) => t.layout.ciphertexts(),
        }
    }

    /// Encodes a matrix, a plaintext a tile; zeros beside it.
    ///
    /// # Errors
    /// [`MatrixError::Expr`], [`MatrixError::He`].
    pub fn encode(&self, encoder: &Encoder, matrix: &Matrix, at: EncodeAt) -> Result<Vec<Plaintext>, MatrixError> {
        match self {
            Self::Tiles(t) => t.layout.encode(encoder, matrix, at),
            Self::Table(t) => t.layout.encode(encoder, matrix, at),
        }
    }

    /// Decodes a matrix.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`].
    pub fn decode(&self, params: &Params, tiles: &[Decrypted]) -> Result<Matrix, MatrixError> {
        match self {
            Self::Tiles(t) => t.layout.decode(params, tiles),
            Self::Table(t) => t.layout.decode(params, tiles),
        }
    }

    /// Whether everything beside the matrix is zero.
    pub fn is_clean(&self) -> bool {
        match self {
            Self::Tiles(t) => t.clean,
            Self::Table(t) => Grid { layout: t.layout, clean: t.clean, tiles: [].as_slice().into() }.is_clean(),
        }
    }

    /// The same layout, with zeros beside the matrix.
    pub fn cleaned(&self) -> Self {
        match self {
            Self::Tiles(t) => Tiled::zero_padded(t.layout),
            Self::Table(t) => Tabled::zero_padded(t.layout),
        }
    }

    /// Whether a slot of a tile holds an element.
    fn holds(&self, tile: usize, slot: usize) -> bool {
        match self {
            Self::Tiles(t) => t.layout.holds(tile, slot),
            Self::Table(t) => t.layout.holds(tile, slot),
        }
    }

    /// The slots of a tile: one number in those with an element, another beside them.
    fn pattern(&self, tile: usize, slots: usize, (element, beside): (f64, f64)) -> Vec<f64> {
        (0..slots).map(|slot| if self.holds(tile, slot) { element } else { beside }).collect()
    }

    /// Zeros beside the matrix, and its scale set to `scale`. One level.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn masked(&self, e: &Evaluator, tiles: &[Ciphertext], scale: f64) -> Result<Vec<Ciphertext>, MatrixError> {
        let (params, encoder) = (e.params(), Encoder::new(e.params()));
        let mask = |t: usize| {
            let c = &tiles[t];
            let at = EncodeAt {
                level: c.level(),
                scale: scale / c.scale() * params.prime_at(c.level()) as f64,
                max_abs: 1.0,
            };
            let mask = encoder.encode_at(&self.pattern(t, params.slots(), (1.0, 0.0)), at)?;
            Ok(e.mul_plain_rescale(c, &mask)?.with_bound(c.bound()))
        };
        threads::map(tiles.len(), mask).into_iter().collect()
    }

    /// Adds a number to each element, another beside them. No level.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn shifted(
        &self,
        e: &Evaluator,
        tiles: &[Ciphertext],
        numbers: (f64, f64),
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        let (slots, encoder) = (e.params().slots(), Encoder::new(e.params()));
        let add = |t: usize| {
            let (c, values) = (&tiles[t], self.pattern(t, slots, numbers));
            let max_abs = values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            match max_abs == 0.0 {
                true => Ok(c.clone()),
                false => {
                    let at = EncodeAt { level: c.level(), scale: c.scale(), max_abs };
                    Ok(e.add_plain(c, &encoder.encode_at(&values, at)?)?)
                }
            }
        };
        threads::map(tiles.len(), add).into_iter().collect()
    }
}
