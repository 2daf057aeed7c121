//! Compiles the emulator where it is asked for, and takes kernels that were compiled ahead.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::rerun-if-changed=emulator");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SUDARE_CUDA_FATBIN");
    fatbin();
    #[cfg(feature = "emulate")]
    emulator();
}

/// `make cuda-kernels` compiles a file with code for every card; a build that is to carry it names it.
fn fatbin() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names the folder")).join("built.rs");
    let code = match std::env::var("SUDARE_CUDA_FATBIN") {
        Ok(path) => {
            println!("cargo::rerun-if-changed={path}");
            format!("Some(include_bytes!({path:?}))")
        }
        Err(_) => "None".into(),
    };
    std::fs::write(out, code).expect("the folder of the build can be written");
}

#[cfg(feature = "emulate")]
fn emulator() {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .file("emulator/emulator.cpp")
        .opt_level(1)
        .flag("-ffp-contract=off")
        .flag("-Wno-unused-parameter");
    // Fused products are one instruction where the processor has it, and a library's function otherwise: the same bits.
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("fma") {
        build.flag("-mfma");
    }
    #[cfg(feature = "sanitize")]
    {
        build.flag("-fsanitize=address").flag("-fno-omit-frame-pointer");
        println!("cargo::rustc-link-arg-tests=-lasan");
    }
    build.compile("sudare_emulator");
}
