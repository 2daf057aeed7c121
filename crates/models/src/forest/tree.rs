//! Trees in the clear.

use crate::error::{ModelError, format};
use serde::{Deserialize, Serialize};

/// Leaves of all trees at most.
const MAX_LEAVES: usize = 1 << 20;
/// Steps to a leaf at most: as many as a table counts.
pub(crate) const MAX_DEPTH: usize = 255;

/// A node of a tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Rows whose feature is at most the threshold go left, others right.
    Split {
        /// Which feature.
        feature: usize,
        /// The threshold.
        threshold: f64,
        /// Number of the node on the left, above this one's.
        left: usize,
        /// Number of the node on the right, above this one's.
        right: usize,
    },
    /// What is added to each output.
    Leaf(Vec<f64>),
}

/// Trees whose leaves are added up: forests, whose leaves have been divided by the number of trees, and boosted trees.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    inputs: usize,
    single: bool,
    base: Vec<f64>,
    trees: Vec<Vec<Node>>,
}

/// One step to a leaf: the feature, the threshold, and whether it goes left.
pub(crate) type Step = (usize, f64, bool);

impl Forest {
    /// Trees for rows of `inputs` features; a tree's first node is its root. Outputs begin with `base`, one number each. With `single`,
    /// features are rounded to single precision before they are compared, as scikit-learn and XGBoost do.
    ///
    /// # Errors
    /// [`ModelError::Format`] for what is no tree: without nodes, with numbers of nodes, features or outputs that do not fit, numbers that are not
    /// finite, ways over 255 steps, or over 2^20 leaves.
    pub fn new(inputs: usize, single: bool, base: Vec<f64>, mut trees: Vec<Vec<Node>>) -> Result<Self, ModelError> {
        if inputs == 0 || base.is_empty() || trees.is_empty() {
            return format("a forest needs at least one feature, one output and one tree");
        }
        if base.iter().any(|x| !x.is_finite()) {
            return format("the first scores of the forest are not finite");
        }
        let mut leaves = 0;
        for (number, tree) in trees.iter_mut().enumerate() {
            leaves += check(tree, inputs, base.len()).or_else(|what| format(format!("tree {number}: {what}")))?;
        }
        if leaves > MAX_LEAVES {
            return format(format!(
                "the forest has {leaves} leaves, and {MAX_LEAVES} are the most; use fewer or smaller trees"
            ));
        }
        Ok(Self { inputs, single, base, trees })
    }

    /// Features of a row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Scores of a row.
    pub fn outputs(&self) -> usize {
        self.base.len()
    }

    /// Whether features are rounded to single precision.
    pub fn single(&self) -> bool {
        self.single
    }

    /// The longest way to a leaf.
    pub(crate) fn depth(&self) -> usize {
        self.ways().iter().map(|(steps, _)| steps.len()).fold(0, usize::max)
    }

    /// Bound on what leaves add to a score.
    pub(crate) fn largest(&self) -> f64 {
        let of = |node: &Node| match node {
            Node::Leaf(values) => values.iter().fold(0.0, |a: f64, v| a.max(v.abs())),
            Node::Split { .. } => 0.0,
        };
        self.trees.iter().map(|tree| tree.iter().map(of).fold(0.0, f64::max)).sum()
    }

    /// What scores begin with.
    pub(crate) fn base(&self) -> &[f64] {
        &self.base
    }

    /// The scores of a row, in the clear.
    ///
    /// # Errors
    /// [`ModelError::Shape`]; [`ModelError::NotFinite`], row 0.
    pub fn evaluate(&self, row: &[f64]) -> Result<Vec<f64>, ModelError> {
        let row = compared(row, self.inputs, self.single)?;
        let mut out = self.base.clone();
        for tree in &self.trees {
            let mut at = 0;
            while let Node::Split { feature, threshold, left, right } = &tree[at] {
                at = if row[*feature] <= *threshold { *left } else { *right };
            }
            if let Node::Leaf(values) = &tree[at] {
                out.iter_mut().zip(values).for_each(|(o, v)| *o += v);
            }
        }
        Ok(out)
    }

    /// Of each feature its thresholds, each once, in their order.
    pub(crate) fn thresholds(&self) -> Vec<Vec<f64>> {
        let mut out = vec![Vec::new(); self.inputs];
        for node in self.trees.iter().flatten() {
            if let Node::Split { feature, threshold, .. } = node {
                out[*feature].push(*threshold);
            }
        }
        for all in &mut out {
            all.sort_by(f64::total_cmp);
            all.dedup();
        }
        out
    }

    /// The steps to every leaf, and its values.
    pub(crate) fn ways(&self) -> Vec<(Vec<Step>, &[f64])> {
        let mut out = Vec::new();
        for tree in &self.trees {
            let mut open: Vec<(usize, Vec<Step>)> = vec![(0, Vec::new())];
            while let Some((at, steps)) = open.pop() {
                match &tree[at] {
                    Node::Leaf(values) => out.push((steps, values.as_slice())),
                    Node::Split { feature, threshold, left, right } => {
                        for (next, goes_left) in [(*right, false), (*left, true)] {
                            let mut longer = steps.clone();
                            longer.push((*feature, *threshold, goes_left));
                            open.push((next, longer));
                        }
                    }
                }
            }
        }
        out
    }

    /// The trees with the mean of each tree's leaves taken out of them and put into the first scores: what is multiplied by indicators is
    /// smaller then, and so are its errors.
    pub(crate) fn centred(mut self) -> Self {
        let outputs = self.base.len();
        for tree in &mut self.trees {
            let leaves = tree.iter().filter(|node| matches!(node, Node::Leaf(_))).count() as f64;
            for o in 0..outputs {
                let all = || tree.iter().filter_map(|node| if let Node::Leaf(v) = node { Some(v[o]) } else { None });
                let mean = all().sum::<f64>() / leaves;
                for node in tree.iter_mut() {
                    if let Node::Leaf(values) = node {
                        values[o] -= mean;
                    }
                }
                self.base[o] += mean;
            }
        }
        self
    }

    /// As it is written to files.
    pub(crate) fn written(&self) -> Written {
        let one = |tree: &Vec<Node>| {
            let (mut out, mut thresholds, mut values) = (Vec::new(), Vec::new(), Vec::new());
            for node in tree {
                match node {
                    Node::Split { feature, threshold, left, right } => {
                        out.push(Some([*feature, *left, *right]));
                        thresholds.push(*threshold);
                    }
                    Node::Leaf(all) => {
                        out.push(None);
                        values.extend(all);
                    }
                }
            }
            WrittenTree { nodes: out, thresholds, values }
        };
        let trees = self.trees.iter().map(one).collect();
        Written { inputs: self.inputs, single: self.single, base: self.base.clone(), trees }
    }
}

/// A forest in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    inputs: usize,
    single: bool,
    base: Vec<f64>,
    trees: Vec<WrittenTree>,
}

/// A tree in a file: of each inner node feature, left and right; thresholds of these and values of leaves in the nodes' order.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTree {
    nodes: Vec<Option<[usize; 3]>>,
    thresholds: Vec<f64>,
    values: Vec<f64>,
}

impl Written {
    /// The forest.
    ///
    /// # Errors
    /// As [`Forest::new`].
    pub fn read(self) -> Result<Forest, ModelError> {
        let outputs = self.base.len();
        let one = |tree: WrittenTree| {
            let splits = tree.nodes.iter().flatten().count();
            let leaves = tree.nodes.len() - splits;
            if tree.thresholds.len() != splits || Some(tree.values.len()) != leaves.checked_mul(outputs) {
                return format("a tree has too many numbers, or too few");
            }
            let (mut thresholds, mut values) = (tree.thresholds.into_iter(), tree.values.into_iter());
            let node = |node: Option<[usize; 3]>| match node {
                None => Node::Leaf(values.by_ref().take(outputs).collect()),
                Some([feature, left, right]) => {
                    Node::Split { feature, threshold: thresholds.next().unwrap_or(f64::NAN), left, right }
                }
            };
            Ok(tree.nodes.into_iter().map(node).collect())
        };
        let trees = self.trees.into_iter().map(one).collect::<Result<_, _>>()?;
        Forest::new(self.inputs, self.single, self.base, trees)
    }
}

/// A row as it is compared.
///
/// # Errors
/// [`ModelError::Shape`]; [`ModelError::NotFinite`], row 0, also for what single precision does not hold.
pub(crate) fn compared(row: &[f64], inputs: usize, single: bool) -> Result<Vec<f64>, ModelError> {
    if row.len() != inputs {
        return Err(ModelError::Shape { what: "a row", found: row.len(), expected: inputs });
    }
    let one = |x: &f64| if single { f64::from(*x as f32) } else { *x };
    let out: Vec<f64> = row.iter().map(one).collect();
    match out.iter().all(|x| x.is_finite()) {
        true => Ok(out),
        false => Err(ModelError::NotFinite { row: 0 }),
    }
}

/// The leaves of a tree, or what is wrong with it. Of thresholds, −0 becomes 0: both compare alike, and thresholds are distinguished by their bits.
fn check(tree: &mut [Node], inputs: usize, outputs: usize) -> Result<usize, &'static str> {
    let mut depths: Vec<Option<usize>> = vec![None; tree.len()];
    let Some(root) = depths.first_mut() else { return Err("it has no nodes") };
    *root = Some(0);
    let mut leaves = 0;
    for at in 0..tree.len() {
        let Some(depth) = depths[at] else { return Err("no other node leads to one of its nodes") };
        match &mut tree[at] {
            Node::Leaf(values) => {
                leaves += 1;
                if values.len() != outputs || values.iter().any(|x| !x.is_finite()) {
                    return Err("a leaf has values that are not finite, or not one for each output");
                }
            }
            Node::Split { feature, threshold, left, right } => {
                if *feature >= inputs {
                    return Err("a node compares a feature that rows do not have");
                }
                if !threshold.is_finite() {
                    return Err("a threshold is not finite");
                }
                if depth == MAX_DEPTH {
                    return Err("a path has over 255 steps; use smaller trees");
                }
                *threshold += 0.0;
                for next in [*left, *right] {
                    match depths.get_mut(next) {
                        Some(of @ None) if next > at => *of = Some(depth + 1),
                        _ => return Err("a node does not come after its parent, or has two parents"),
                    }
                }
            }
        }
    }
    Ok(leaves)
}
