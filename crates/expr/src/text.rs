//! Expressions in words.

use crate::expr::Expr;
use std::fmt;

impl Expr {
    /// A node's value in words.
    pub fn text(&self, node: usize) -> String {
        // Shared nodes are written out at each use; a deep expression is told by its size.
        let mut size = vec![1u64; node + 1];
        for (at, n) in self.nodes()[..=node].iter().enumerate() {
            let shown = n.operation.written(|_| String::new()).operands.len();
            size[at] = n.operands.iter().take(shown).fold(1, |sum, o| sum.saturating_add(size[*o]));
        }
        if size[node] > 64 {
            return format!("an expression of {} operations", node + 1);
        }
        self.written(node, 0)
    }

    fn written(&self, node: usize, binding: u8) -> String {
        let at = &self.nodes()[node];
        let written = at.operation.written(|input| self.inputs()[input].name.clone());
        let operands = at.operands.iter().zip(written.operands).map(|(o, binding)| self.written(*o, *binding));
        let inner = operands.collect::<Vec<_>>().join(written.between);
        let text = format!("{}{inner}{}", written.before, written.after);
        if written.own < binding { format!("({text})") } else { text }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let results: Vec<String> = self.results().map(|node| self.text(node)).collect();
        f.write_str(&results.join(", "))
    }
}
