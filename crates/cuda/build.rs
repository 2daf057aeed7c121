//! Compiles the emulator where it is asked for.

fn main() {
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::rerun-if-changed=emulator");
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "emulate")]
    emulator();
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
