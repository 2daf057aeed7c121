//! The emulator sees a barrier that is left out: each one of each kernel, one at a time. So none is missing, and none
//! stands there for nothing.

use crate::support;

use sudare_cuda::{Batch, CudaError, Device, Division, Gadget, Pairs, Trial, kernels};
use sudare_ring::Coeff;
use support::*;

/// Leaves out barrier 0, 1, … of a kernel until one is not missed: how many the kernel has, all of which it needs.
#[track_caller]
fn needed(kernel: &'static str, run: impl Fn(&Device) -> Result<(), CudaError>) -> u32 {
    for number in 0.. {
        let device = Device::emulator(Trial { seed: 5, leave_out: Some((kernel, number)), ..Trial::default() }, ROOM);
        match run(&device) {
            Ok(()) => return number,
            Err(CudaError::Emulator(fault)) => {
                assert!(fault.starts_with(&format!("kernel {kernel},")) && fault.contains("a race"), "{fault}");
            }
            Err(other) => panic!("{kernel}: {other}"),
        }
    }
    unreachable!("barriers end")
}

#[test]
fn transforms_need_a_barrier_between_passes() {
    for (n, passes, back, there) in [
        (1024, 2, "start_6", "parts_forward_6"),
        (4096, 2, "start_8", "parts_forward_8"),
        (1 << 14, 3, "start_10", "parts_forward_10"),
    ] {
        for bits in [48, 50, 61] {
            let basis = basis(n, &[bits]);
            let values = items(1, &basis, 1, 1);
            assert_eq!(needed(back, |d| batch(d, &basis, &values).to_coeff().map(drop)), passes - 1);
            let p = coefficients(1, &basis);
            let forward =
                |d: &Device| Batch::<Coeff>::from_host(d, &basis, &[std::slice::from_ref(&p)])?.to_eval().map(drop);
            assert_eq!(needed(there, forward), passes - 1);
        }
    }
}

#[test]
fn key_switches_need_all_of_theirs() {
    // Three digits of one prime, so that a special prime has three exchanges and two inverse transforms.
    for (n, passes, kernels) in [(1024, 2, ["switch_6", "divide_6"]), (1 << 13, 3, ["switch_9", "divide_9"])] {
        let q = basis(n, &[49, 40, 60]);
        let p = apart(n, &[49], &[&q]);
        let key = pairs(1, &q.concat(&p).unwrap(), 3);
        let (a, b) = (items(0, &q, 1, 2), items(5, &q, 1, 2));
        let product = |device: &Device| {
            let keys = Pairs::from_host(device, &key)?;
            let divide = Division::new(device, &q, &p)?;
            let (x, y) = (batch(device, &q, &a), batch(device, &q, &b));
            Gadget::new(device, &q, &p, 1)?.product(&x, &y, &keys, &divide).map(drop)
        };
        assert_eq!(needed(kernels[0], product), 3 * (passes - 1) + 2 + 2 * (passes - 1) + 1, "{}", kernels[0]);
        assert_eq!(needed(kernels[1], product), passes - 1, "{}", kernels[1]);
    }
}

#[test]
fn kernels_without_barriers_have_none() {
    let basis = basis(1024, &[49, 61]);
    let values = items(1, &basis, 2, 2);
    for kernel in ["add", "tensor", "permute_values", "columns_inverse"] {
        let all = |device: &Device| {
            let x = batch(device, &basis, &values);
            x.add(&x)?.tensor(&x)?.automorphism(5)?.to_coeff().map(drop)
        };
        assert_eq!(needed(kernel, all), 0);
    }
}

/// A name that a launch uses and no kernel has would be found on a card alone.
#[test]
fn every_kernel_is_compiled() {
    let mut names = kernels();
    names.sort();
    assert_eq!(names.len(), 18 + 4 * 7, "{names:?}");
    for part in ["parts_forward", "start", "switch", "divide"] {
        assert!((6..=12).all(|l| names.contains(&format!("{part}_{l}"))));
    }
    assert!(sudare_cuda::source().lines().all(|line| !line.starts_with("#include \"")));
}
