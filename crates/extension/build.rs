//! How a module of Python is linked on this system.
fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
