//! The driver for cards, without one: NVIDIA's library is replaced by `emulator/host_driver.cpp`, which checks every
//! call and runs the kernels by the emulator. The library is looked for when a card is opened, so each case is a process
//! of its own that finds this one.

use crate::support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use sudare_cuda::{CudaError, Device, Division, Gadget, Kernels, Pairs, image_name};
use sudare_ring::ops;
use support::*;

/// The folder with libcuda.so.1, compiled once.
fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("host-driver");
        std::fs::create_dir_all(&folder).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("emulator/host_driver.cpp");
        let made = folder.join("libcuda.so.1");
        let age = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
        let files = ["emulator", "kernels"].map(|f| Path::new(env!("CARGO_MANIFEST_DIR")).join(f));
        let newest = files.iter().flat_map(|f| f.read_dir().unwrap()).filter_map(|f| age(&f.unwrap().path())).max();
        if age(&made) < newest {
            let flags = ["-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o"];
            let fma = std::arch::is_x86_feature_detected!("fma").then_some("-mfma");
            let done = Command::new("c++").args(flags).arg(&made).args(fma).arg(&source).status().unwrap();
            assert!(done.success());
        }
        // The driver takes this text for its kernels.
        std::fs::write(folder.join(image_name("compute_75.ptx")), "kernels of the host").unwrap();
        folder
    })
}

/// Runs an ignored test of this file where the library is found.
fn with_library(test: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("LD_LIBRARY_PATH", library()).env("SUDARE_HOST_KERNELS", library());
    command.envs(variables.iter().copied()).output().unwrap()
}

#[track_caller]
fn passes(test: &str, variables: &[(&str, &str)]) -> String {
    let out = with_library(test, variables);
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && said.contains("1 passed"), "{said}");
    said
}

fn kernels() -> Kernels {
    Kernels::in_folder(std::env::var_os("SUDARE_HOST_KERNELS").unwrap())
}

#[test]
fn operations_through_the_driver() {
    // As it is; with few units for doubles, so that words serve every prime; without memory pools.
    for variables in [&[][..], &[("SUDARE_HOST_RATIO", "64")], &[("SUDARE_HOST_POOLS", "0")]] {
        let said = passes("card::products_on_the_host", variables);
        // Everything was freed, and more was launched than a product takes.
        assert!(said.contains("released, 0 bytes allocated"), "{said}");
    }
}

#[test]
fn a_launch_that_fails_ends_the_device() {
    passes("card::after_a_fault_nothing_works", &[("SUDARE_HOST_FAULT", "3")]);
}

#[test]
fn others_in_the_process() {
    passes("card::contexts_and_forks", &[]);
}

#[test]
fn a_driver_that_is_too_old() {
    passes("card::an_old_driver_is_refused", &[("SUDARE_HOST_VERSION", "11080")]);
}

#[test]
#[ignore = "run by operations_through_the_driver"]
fn products_on_the_host() {
    let info = Device::list().unwrap().remove(0);
    assert_eq!((info.name.as_str(), info.capability, info.emulated), ("host", (9, 0), false));
    assert_eq!(Device::open(1, &kernels()).unwrap_err(), CudaError::NoDevice { index: 1, count: 1 });
    let folder = std::env::temp_dir().join(format!("sudare-wrong-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(image_name("sm_90.cubin")), b"\x7FELF, but no kernels").unwrap();
    let wrong = Device::open(0, &Kernels::in_folder(&folder)).unwrap_err();
    assert!(wrong.to_string().contains("no image of the host"), "{wrong}");
    std::fs::remove_dir_all(&folder).unwrap();

    let device = Device::open(0, &kernels()).unwrap();
    // 2^15: a part of 2048 values, whose key switch takes more shared memory than a kernel has unasked.
    for n in [1024, 1 << 15] {
        let q = basis(n, &[49, 60]);
        let p = apart(n, &[61], &[&q]);
        let gadget = ops::RnsGadget::new(&q, &p, 1).unwrap();
        let key = pairs(1, gadget.qp(), 2);
        let (a, b) = (items(0, &q, 1, 2), items(5, &q, 1, 2));
        let (x, y) = (batch(&device, &q, &a), batch(&device, &q, &b));
        let here = Gadget::new(&device, &q, &p, 1).unwrap();
        let (keys, divide) = (Pairs::from_host(&device, &key).unwrap(), Division::new(&device, &q, &p).unwrap());
        let [d0, d1, d2] = ops::tensor(&q, &[[&a[0][0], &a[0][1]]], &[[&b[0][0], &b[0][1]]]);
        let want = ops::Division::new(&q, &p).unwrap().apply(gadget.switch(&d2, Some([&d0, &d1]), &key));
        let run = || here.product(&x, &y, &keys, &divide);
        equal("product", &run().unwrap(), &[want.into()]);
        // The second time nothing is asked of the driver but launches: five, of a millisecond each.
        let (_, before) = device.pooled();
        assert_eq!(device.timed(&mut || run().map(drop)).unwrap(), Some(5000.0));
        assert!(device.pooled().1 >= before + 6, "memory is used again");
        let launches = device.launches(&mut || run().map(drop)).unwrap();
        let names: Vec<&str> = launches.iter().map(|l| l.kernel.split('_').next().unwrap()).collect();
        assert_eq!(names, ["start", "lift", "switch", "lift", "divide"], "{launches:?}");
        assert!(launches.iter().all(|l| l.us == Some(1000.0)), "{launches:?}");
        // From another thread.
        std::thread::scope(|s| s.spawn(|| run().unwrap().item_to_host(0).unwrap()).join().unwrap());
    }
    // A polynomial of 2 MB, 40 of them three times, and what the pool keeps: some 305 of 320 MB.
    let ring = basis(1 << 16, &[49; 4]);
    let one = values(1, &ring);
    let refs: Vec<&[_]> = (0..40).map(|_| std::slice::from_ref(&one)).collect();
    let large = sudare_cuda::Batch::<sudare_ring::Eval>::from_host(&device, &ring, &refs).unwrap();
    drop(large.items_of(0..24).unwrap().neg().unwrap());
    let kept = [large.neg().unwrap(), large.neg().unwrap()];
    assert!(device.pooled().0 >= 48 << 20);
    // What the pool keeps is given back before there is no more.
    assert_eq!(large.items_of(0..20).unwrap().neg().unwrap().len(), 20);
    assert!(device.pooled().0 < 48 << 20);
    let full = large.neg().unwrap_err();
    assert!(matches!(full, CudaError::OutOfMemory { total: 335_544_320, .. }), "{full}");
    equal("kept", &kept[1].items_of(31..32).unwrap().neg().unwrap(), &[vec![one]]);
}

#[test]
#[ignore = "run by a_driver_that_is_too_old"]
fn an_old_driver_is_refused() {
    let error = Device::open(0, &kernels()).unwrap_err();
    assert_eq!(error, CudaError::OldDriver { found: 11_080 });
    assert!(error.to_string().contains("CUDA 11.8") && error.to_string().contains("driver 525"), "{error}");
}

#[test]
#[ignore = "run by a_launch_that_fails_ends_the_device"]
fn after_a_fault_nothing_works() {
    let device = Device::open(0, &kernels()).unwrap();
    let ring = basis(1024, &[49]);
    let x = batch(&device, &ring, &items(1, &ring, 1, 1));
    let sums: Vec<_> = (0..3).map(|_| x.neg().unwrap()).collect();
    for _ in 0..2 {
        let error = sums[0].to_host().unwrap_err();
        assert!(matches!(error, CudaError::Lost { .. }) && error.to_string().contains("start it again"), "{error}");
    }
}

#[test]
#[ignore = "run by others_in_the_process"]
fn contexts_and_forks() {
    use cudarc::driver::sys;
    let device = Device::open(0, &kernels()).unwrap();
    let current = || {
        let mut context = std::ptr::null_mut();
        // SAFETY: writes one handle.
        assert_eq!(unsafe { sys::cuCtxGetCurrent(&raw mut context) }, sys::CUresult::CUDA_SUCCESS);
        context as usize
    };
    assert_eq!(current(), 0, "there was none, and there is none");
    // SAFETY: this driver takes any handle for another one's context, and nothing is done there.
    unsafe { sys::cuCtxSetCurrent(0x5000 as sys::CUcontext) };
    let ring = basis(1024, &[49]);
    let one = items(1, &ring, 1, 1);
    let x = batch(&device, &ring, &one);
    equal("twice the other sign", &x.neg().unwrap().neg().unwrap(), &one);
    assert_eq!(current(), 0x5000);
    // A fork has no device, whether it was opened before or is opened there.
    let (parent, child) = sudare_testkit::process::in_both(|| {
        let said = |error: Option<CudaError>| error.map_or("works".into(), |e| e.to_string());
        format!("{}|{}", said(x.neg().err()), said(Device::open(0, &kernels()).err())).into_bytes()
    });
    assert_eq!(parent, b"works|works");
    let child = String::from_utf8(child).unwrap();
    let (held, opened) = child.split_once('|').unwrap();
    assert!(held.contains("does not survive a fork") && held.contains("spawn") && held == opened, "{child}");
}
