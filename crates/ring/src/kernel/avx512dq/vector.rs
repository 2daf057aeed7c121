pub use super::super::portable::{
    add, add_assign, combine, dot, dot_pair, mul, mul_add, mul_assign, mul_scalar, mul_scalar_add, neg_assign, reduce,
    reduce_centered, sub, sub_assign, sub_mul_scalar,
};
