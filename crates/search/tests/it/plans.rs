//! Plans and their figures.

use crate::world::*;
use sudare_ring::count::counted;
use sudare_ring::{ErrorKind, Kinded};
use sudare_search::{Client, Dtype, Gap, Goal, Index, Payload, SearchError};
use sudare_testkit::Random;

#[test]
fn the_sizes_of_the_public_benchmark() {
    let benchmark = |d, rows, low| {
        let gap = Gap { low, high: 0.82 };
        Index::new(Goal {
            d,
            rows,
            above: 0.8,
            gap,
            lowest: -low,
            payload: Some(Payload { numbers: 7, bits: 12, dtype: None }),
        })
        .unwrap()
    };
    for (d, rows, low, segments, database) in
        [(128, 50_000, 0.66, 4, 0.39e9), (256, 1_000_000, 0.52, 62, 11.7e9), (512, 20_000_000, 0.40, 1221, 453e9)]
    {
        let index = benchmark(d, rows, low);
        let (expected, bytes) = (index.expected(), index.bytes());
        assert_eq!(index.segments(), segments);
        assert!((bytes.database as f64 / database - 1.0).abs() < 0.06, "{bytes:?}");
        assert!(expected.bias < 0.1 && expected.log2_failure < -60.0, "{expected:?}");
        assert!(expected.digit < 0.05, "{expected:?}");
        assert!(bytes.keys < 60_000_000 && bytes.count < 350_000 && bytes.fetch < 3_500_000, "{bytes:?}");
    }
}

/// Seconds are those of work that a count does: its transforms, and rows that are read once.
#[test]
fn a_count_does_the_work_of_its_plan() {
    let mut random = Random(42);
    for world in [World::small(goal(2048)), World::compact(goal(4096))] {
        let index = world.client.index();
        let (folder, data) = (tempfile::tempdir().unwrap(), Data::new(&mut random, index.goal().rows as usize, D));
        let path = folder.path().join("t");
        world.store(&path, &data);
        let held = world.server.open(&path, MEMORY).unwrap();
        assert_eq!(held.segments().0, index.segments() as usize);
        let query = world.query(&data.questions(&mut random)[0]);
        let (_, counts) = counted(|| world.server.count(&held, &query, &[GAP], QUIET).unwrap());
        let transforms = index.seconds(&|work, _| work.ntt + work.ntt_wide);
        let ratio = counts.transforms as f64 / transforms;
        assert!((0.9..1.1).contains(&ratio), "{} {counts:?} {transforms}", index.mode());
        let read = index.seconds(&|work, _| work.operand_bytes);
        let coordinates = (index.segments() * index.segment_rows() as u64) as f64 * D as f64;
        assert!(read >= 8.0 * coordinates, "{}: {read}", index.mode());
    }
}

#[test]
fn foretold_sizes_are_those_of_objects() {
    let index = Index::new(Goal {
        d: 16,
        rows: 100,
        above: 0.9,
        gap: Gap { low: 0.7, high: 0.95 },
        lowest: -1.0,
        payload: None,
    })
    .unwrap();
    let client = Client::new(&index).unwrap();
    let (bytes, query) = (index.bytes(), client.query(&[1.0; 16]).unwrap().to_bytes().unwrap().len() as f64);
    let keys = client.keys().unwrap().wire_bytes().unwrap() as f64;
    assert!((query / bytes.query as f64 - 1.0).abs() < 0.02, "{query} {bytes:?}");
    assert!((keys / bytes.keys as f64 - 1.0).abs() < 0.15, "{keys} {bytes:?}");
}

#[test]
fn a_plan_is_its_text() {
    for index in [Index::new(goal(1000)).unwrap(), Index::insecure(goal(77), 10).unwrap()] {
        let again = Index::from_json(&index.to_json()).unwrap();
        assert_eq!((again.hash(), again.goal(), again.params()), (index.hash(), index.goal(), index.params()));
        assert!(index.explain(&|_, _| 1.0).contains("the server learns"));
    }
    assert_ne!(Index::insecure(goal(77), 9).unwrap().hash(), Index::insecure(goal(78), 9).unwrap().hash());
    for text in [
        "",
        "{}",
        "{\"sudare_index\": 2}",
        &Index::insecure(goal(9), 9).unwrap().to_json().replace("\"d\": 128", "\"d\": 0"),
    ] {
        assert!(Index::from_json(text).is_err(), "{text}");
    }
}

/// The text keeps the type for the owner; tables and messages have the bits alone, and belong to plans with any type of them.
#[test]
fn the_type_of_payloads_is_in_the_text_and_not_in_the_name() {
    let of = |payload| Index::insecure(Goal { payload: Some(payload), ..goal(77) }, 9);
    let dtype = |name: &str| name.parse::<Dtype>();
    let plain = of(Payload { numbers: 2, bits: 16, dtype: None }).unwrap();
    assert!(!plain.to_json().contains("dtype"));
    assert_eq!(of(Payload::new(2, 16, dtype("u2").unwrap())).unwrap().to_json(), plain.to_json());
    for name in ["i2", "f2", "u4", "u8"] {
        let index = of(Payload::new(2, 16, dtype(name).unwrap())).unwrap();
        let again = Index::from_json(&index.to_json()).unwrap();
        assert_eq!((again.goal(), again.hash()), (index.goal(), plain.hash()));
        assert_eq!(again.goal().payload.unwrap().dtype().to_string(), name);
        for other in ["i4", "f8", "u1", "i3", "U2"] {
            let damaged = index.to_json().replace(name, other);
            assert!(Index::from_json(&damaged).is_err(), "{damaged}");
        }
    }
    for (bits, name) in [(12, "i2"), (16, "f4"), (17, "u2"), (0, "u1"), (65, "u8")] {
        let refused = of(Payload::new(2, bits, dtype(name).unwrap())).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Parameters, "{bits} of {name}: {refused}");
    }
    for name in ["", "i", "i3", "f1", "u16", "é2", "I2", "<i2", "b1"] {
        assert!(dtype(name).is_err(), "{name}");
    }
    for (bits, name, least, most) in [
        (12, "u2", 0, 4095),
        (8, "i1", -128, 127),
        (64, "i8", i64::MIN.into(), i64::MAX.into()),
        (64, "u8", 0, u64::MAX.into()),
    ] {
        let payload = Payload::new(1, bits, dtype(name).unwrap());
        for integer in [least, 0, 1, most - 1, most] {
            assert_eq!(payload.bits_of(integer).and_then(|x| payload.integer_of(x)), Some(integer));
        }
        assert_eq!([least - 1, most + 1].map(|x| payload.bits_of(x)), [None; 2]);
    }
    let float = Payload::new(1, 32, dtype("f4").unwrap());
    assert_eq!((float.bits_of(1), float.integer_of(1)), (None, None));
}

#[test]
fn a_gap_that_is_too_narrow_is_refused_with_one_that_is_not() {
    let narrow = Goal { gap: Gap { low: 0.78, high: 0.82 }, ..goal(50_000) };
    let refused = Index::insecure(narrow, 9).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Parameters);
    let SearchError::Gap { possible, .. } = refused else { panic!("{refused}") };
    assert!((0.6..0.72).contains(&possible), "{possible}");
    assert!(Index::insecure(Goal { gap: Gap { low: possible, high: 0.82 }, ..narrow }, 9).is_ok());

    let goal = Goal::above(64, 10_000, 0.7).unwrap();
    assert!(goal.gap.low < 0.7 && goal.gap.high > 0.7 && Index::insecure(goal, 9).is_ok());
    assert!(Goal::above(64, 10_000, 0.999).is_err() && Goal::above(64, 10_000, -0.2).is_err());
    // Few rows have the places of a segment, and a hundred matches are counted.
    for rows in [100, 1000] {
        let goal = Goal::above(64, rows, 0.5).unwrap();
        let expected = *Index::new(goal).unwrap().expected();
        assert!(expected.matches >= 100 && expected.bias <= 0.2 && expected.log2_failure < -60.0, "{expected:?}");
    }
}

/// Digits are as wide as their errors allow for, in the usual size too.
#[test]
fn digits_of_all_payloads_are_clear() {
    for bits in [1, 8, 9, 10, 20, 30, 64] {
        let index =
            Index::new(Goal { payload: Some(Payload { numbers: 1, bits, dtype: None }), ..goal(50_000) }).unwrap();
        assert!(index.expected().digit < 0.25 / 6.0, "{bits}: {:?}", index.expected());
    }
    // Halves of segments beyond the slots would meet twice.
    let many = Goal { rows: (1 << 26) + 1, gap: Gap { low: 0.3, high: 0.9 }, above: 0.8, ..goal(1) };
    assert_eq!(Index::new(many).unwrap_err().kind(), ErrorKind::Parameters);
    assert!(Index::new(Goal { payload: None, ..many }).is_ok());
}
