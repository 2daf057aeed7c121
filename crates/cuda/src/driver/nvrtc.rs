//! Kernels from their source, by NVIDIA's run-time compiler, which is looked for when it is wanted.

use cudarc::nvrtc::{result as nvrtc, sys};
use std::ffi::CString;

/// Whether the library can be loaded.
pub(super) fn is_there() -> bool {
    // SAFETY: asks for no more.
    unsafe { sys::is_culib_present() }
}

/// A cubin by NVRTC, or what it says of the source.
pub(super) fn compile(source: &str, capability: (u32, u32)) -> std::result::Result<Vec<u8>, String> {
    if !is_there() {
        return Err("none were compiled ahead for it, and libnvrtc.so is not installed".into());
    }
    let text = CString::new(source).map_err(|e| e.to_string())?;
    let program = nvrtc::create_program(&text, Some(c"sudare.cu")).map_err(|e| e.to_string())?;
    let options = [format!("--gpu-architecture=sm_{}{}", capability.0, capability.1), "--std=c++17".into()];
    // SAFETY: the program was just made, and is destroyed after this.
    let done = unsafe { nvrtc::compile_program(program, &options) };
    let result = match done {
        Ok(()) => cubin(program),
        Err(error) => Err(format!("{error}: {}", log(program))),
    };
    // SAFETY: nothing uses the program after this.
    unsafe { nvrtc::destroy_program(program) }.map_err(|e| e.to_string())?;
    result
}

/// The start of what the compiler says.
fn log(program: sys::nvrtcProgram) -> String {
    // SAFETY: the program lives.
    match unsafe { nvrtc::get_program_log(program) } {
        Ok(log) => log.iter().map(|c| char::from(*c as u8)).take(400).collect(),
        Err(error) => error.to_string(),
    }
}

fn cubin(program: sys::nvrtcProgram) -> std::result::Result<Vec<u8>, String> {
    let mut size = 0;
    // SAFETY: the program is compiled, and the buffer as large as the library says.
    unsafe {
        sys::nvrtcGetCUBINSize(program, &raw mut size).result().map_err(|e| e.to_string())?;
        let mut cubin = vec![0u8; size];
        sys::nvrtcGetCUBIN(program, cubin.as_mut_ptr().cast()).result().map_err(|e| e.to_string())?;
        Ok(cubin)
    }
}
