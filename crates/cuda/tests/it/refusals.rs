//! What cannot be done is refused before anything is launched, by an error that names the remedy.

use crate::support;

use sudare_cuda::{Batch, CudaError, Device, Division, Gadget, Kernels, Pairs, Trial};
use sudare_ring::{Coeff, ErrorKind, Kinded, Poly};
use support::*;

/// Where there is no card the error says what to install; where there is one, it opens.
#[test]
fn a_card_opens_or_says_what_is_missing() {
    match Device::open(0, &Kernels::default()) {
        Ok(device) => assert!(!device.info().emulated),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Machine);
            let text = error.to_string();
            assert!(text.contains("install") || text.contains("device 0"), "{text}");
        }
    }
    if Device::list() == Err(CudaError::NoDriver) {
        let text = Device::open(3, &Kernels::default()).unwrap_err().to_string();
        assert!(text.contains("libcuda.so.1") && text.contains("driver 525"), "{text}");
    }
}

#[test]
fn memory_that_is_used_up() {
    let device = Device::emulator(Trial::default(), 1 << 20);
    let basis = basis(1024, &[49; 2]);
    let values = items(1, &basis, 28, 2);
    let x = batch(&device, &basis, &values);
    let error = x.add(&x).unwrap_err();
    assert!(matches!(error, CudaError::OutOfMemory { total: 1_048_576, .. }), "{error}");
    assert!(error.to_string().contains("fewer ciphertexts at a time"), "{error}");
    // What is dropped is there again.
    let half = x.items_of(0..2).unwrap().neg().unwrap();
    drop(x);
    assert_eq!(half.add(&half).unwrap().len(), 2);
}

#[test]
fn rings_and_conversions_that_kernels_do_not_serve() {
    let device = device();
    let small = basis(512, &[40]);
    let error = Batch::<Coeff>::from_host(&device, &small, &[&[Poly::zero(&small)]]).unwrap_err();
    assert_eq!(error, CudaError::Degree { degree: 512 });
    assert_eq!(error.kind(), ErrorKind::Parameters);
    let kept = basis(1024, &[40]);
    let tail = apart(1024, &[30; 60], &[&kept]);
    let all = kept.concat(&tail).unwrap();
    let x = batch(&device, &all, &items(1, &all, 1, 1));
    let error = Division::new(&device, &kept, &tail).unwrap().apply(&x).unwrap_err();
    assert!(matches!(error, CudaError::SharedMemory { wanted: 245_760, .. }), "{error}");
}

#[test]
fn operands_that_do_not_go_together() {
    let (device, other) = (device(), device());
    let (q, r) = (basis(1024, &[49, 40]), basis(1024, &[48, 40]));
    let x = batch(&device, &q, &items(1, &q, 2, 2));
    let mismatch = |error: CudaError| {
        assert_eq!(error.kind(), ErrorKind::Shape, "{error}");
        error.to_string()
    };
    assert!(mismatch(x.add(&batch(&other, &q, &items(1, &q, 2, 2))).unwrap_err()).contains("different devices"));
    assert!(mismatch(x.add(&batch(&device, &r, &items(1, &r, 2, 2))).unwrap_err()).contains("different primes"));
    mismatch(x.add(&batch(&device, &q, &items(1, &q, 3, 2))).unwrap_err());
    mismatch(x.add(&batch(&device, &q, &items(1, &q, 2, 1))).unwrap_err());
    mismatch(x.tensor(&x).unwrap().tensor(&x.tensor(&x).unwrap()).unwrap_err());
    mismatch(Batch::gather(&[(&x, 2)]).unwrap_err());
    mismatch(Batch::<Coeff>::gather(&[]).unwrap_err());
    mismatch(x.clone().mul_add(&x, &x).unwrap_err());
    let mut selected = x.items_of(0..2).unwrap();
    mismatch(selected.add_automorphism(&x, 5).unwrap_err());

    let p = apart(1024, &[49], &[&q, &r]);
    let (gadget, divide) = (Gadget::new(&device, &q, &p, 1).unwrap(), Division::new(&device, &q, &p).unwrap());
    let short = Pairs::from_host(&device, &pairs(1, gadget.qp(), 1)).unwrap();
    assert!(mismatch(gadget.product(&x, &x, &short, &divide).unwrap_err()).contains("too few"));
    let keys = Pairs::from_host(&device, &pairs(1, gadget.qp(), 2)).unwrap();
    mismatch(gadget.switch(&x, None, &keys).unwrap_err());
    mismatch(gadget.relinearize(&x, &keys, &divide).unwrap_err());
    mismatch(divide.apply(&x).unwrap_err());
    let strange = Division::new(&device, &r, &p).unwrap();
    mismatch(gadget.product(&x, &x, &keys, &strange).unwrap_err());
    assert!(gadget.rotate(&x, 4, &keys, &divide).is_err());
    assert!(Gadget::new(&device, &q, &q.prefix(0), 1).is_err() && Gadget::new(&device, &q, &p, 0).is_err());
    assert!(Gadget::new(&device, &q, &q, 1).is_err());
}

#[test]
fn memory_beyond_a_limit() {
    let device = device();
    let ring = basis(1024, &[49]);
    let x = batch(&device, &ring, &items(1, &ring, 1, 1));
    let taken = ROOM - device.free();
    device.set_limit(taken + 8 * 1024);
    assert_eq!(device.free(), 8 * 1024);
    let sum = x.add(&x).unwrap();
    let full = x.add(&x).unwrap_err();
    assert_eq!(full, CudaError::OutOfMemory { wanted: 8 * 1024, free: 0, total: taken + 8 * 1024 });
    drop(sum);
    x.add(&x).unwrap();
    // A limit below what is taken refuses what comes, and takes nothing away.
    device.set_limit(1);
    assert_eq!(device.free(), 0);
    equal("kept", &x, &items(1, &ring, 1, 1));
}
