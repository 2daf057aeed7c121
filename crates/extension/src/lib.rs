//! The extension module `sudare._core`: the classes of `sudare-py`.
//!
//! A module of Python is linked when every library below it is compiled. So it is a crate of a page, and what there is
//! to compile for Python is in `sudare-py`, beside the crates that it wraps.
#![forbid(unsafe_code)]

use pyo3::prelude::*;

/// What `sudare` is made of.
#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        sudare_py::limit_kernels()
    }

    #[pymodule_export]
    use sudare_py::{
        BitsArray, BitsClient, BitsParams, BitsPublicKey, BitsServer, Client, Context, Encrypted, GenomeClient,
        GenomePanel, GenomeServer, GenomeSites, Index, IndexAnswer, IndexClient, IndexQuery, IndexServer, IndexStoring,
        IndexTable, IntegerContext, Member, Model, ModelAnswer, ModelClient, ModelPlan, ModelRequest, ModelServer,
        PlainClient, PlainIndex, PlainTable, Plan, Polynomial, PublicClient, Release, Remote, Room, Server, SmallArray,
        SmallContext, SmallServer, SmallSet, Stored,
    };
    #[pymodule_export]
    use sudare_py::{
        add_parts, decrypt_part, devices, error_classes, infer, layouts, load_part, matmul_parts, peek, peek_file,
        sum_part, write_file,
    };

    #[pymodule_export]
    use sudare_py::{
        BfvCiphertext, BfvDecryptor, BfvEncryptor, BfvEvaluator, BfvExchange, BfvRefresher, BgvCiphertext,
        BgvDecryptor, BgvEncryptor, BgvEvaluator, BgvExchange, BgvRefresher, CkksBootstrapKeys, CkksBootstrapParams,
        CkksBootstrapper, CkksCiphertext, CkksDecryptor, CkksEncoder, CkksEncryptor, CkksEvaluator, CkksExchange,
        CkksExpected, CkksLinearMap, CkksMatrixVector, CkksParams, CkksPlaintext, CkksPolynomial,
        CkksPolynomialCircuit, CkksTraceFunction, CkksTracePlan, EvalKeys, IntegerEncoder, IntegerParams,
        IntegerPlaintext, KeyGenerator, PublicKey, RefreshKeys, RefreshParams, Requirements, RlweExchange, RlweParams,
        SecretKey, TfheBit, TfheClientKey, TfheInt, TfheLookupTable, TfheParams, TfheServerKey,
    };
    #[pymodule_export]
    use sudare_py::{division_bound, relinearisation_bound, slot_modulus, switched_bound, switching_bound};

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
