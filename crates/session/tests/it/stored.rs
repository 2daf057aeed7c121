//! Matrices in stores, and products in less memory than they take: the bits of the product in memory.

use crate::child::{CHILD, memory, plan};
use crate::common::random;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use sudare_expr::{ExprError, Matrix};
use sudare_methods::MatrixError;
use sudare_plan::Plan;
use sudare_session::{Client, Server};
use sudare_session::{Form, Held, OutOfCore, Part, QUIET, ServerKeys, Stored};
use sudare_store::{BlockSource, Existing, StoreError};

fn options(memory: u64) -> OutOfCore {
    OutOfCore { memory, existing: Existing::Refuse }
}

/// The containers of all blocks.
fn blocks(stored: &Stored) -> Vec<Vec<u8>> {
    let sizes = *stored.reader().sizes();
    (0..sizes.blocks()).map(|at| stored.block(at / sizes.cols, at % sizes.cols).unwrap()).collect()
}

struct World {
    plan: Plan,
    client: Client,
    server: Server,
    matrices: [Vec<Matrix>; 2],
    folder: tempfile::TempDir,
}

impl World {
    fn new(method: &str, shape: (usize, usize, usize), batch: usize) -> Self {
        let plan = plan(method, shape, batch);
        let client = Client::new(&plan, 2).unwrap();
        let server = client.server().unwrap();
        let many = |rows, cols, salt| (0..batch as u64).map(|b| random(salt + 2 * b, rows, cols)).collect();
        let matrices = [many(shape.0, shape.1, 1), many(shape.1, shape.2, 2)];
        Self { plan, client, server, matrices, folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn operands(&self) -> [Stored; 2] {
        [0, 1].map(|i| {
            self.client.encrypt_stored(["A", "B"][i], &self.matrices[i], &self.path(["a", "b"][i]), QUIET).unwrap()
        })
    }

    fn write_keys(&self) {
        self.server.write_keys_to(fs::File::create(self.path("keys")).unwrap()).unwrap();
    }

    /// The least memory that would do.
    fn least(&self, a: &Stored, b: &Stored) -> u64 {
        match self.server.schedule(a, b, &self.path("none"), options(1)) {
            Err(MatrixError::TooLittleMemory { given: 1, least }) => least,
            other => panic!("{other:?}"),
        }
    }
}

/// For every method that has blocks, with as little memory as will do, with some more, and with plenty.
#[test]
fn products_from_stores_have_the_bits_of_those_in_memory() {
    for (method, shape, batch) in
        [("coefficient", (70, 90, 50), 1), ("tiled", (20, 40, 36), 1), ("coefficient", (40, 60, 30), 3)]
    {
        let world = World::new(method, shape, batch);
        let [a, b] = world.operands();
        let expected = world.server.matmul(&a.load().unwrap(), &b.load().unwrap()).unwrap();
        let expected = Stored::save(&world.plan, &expected, &world.path("expected")).unwrap();
        let least = world.least(&a, &b);
        let mut passes = Vec::new();
        for (i, memory) in [least, least + least / 4, 1 << 40].into_iter().enumerate() {
            let path = world.path(&format!("c{i}"));
            let schedule = world.server.schedule(&a, &b, &path, options(memory)).unwrap();
            assert!(schedule.memory <= memory);
            let c = world.server.matmul_stored(&a, &b, &path, options(memory), QUIET).unwrap().product;
            assert!(blocks(&c) == blocks(&expected), "{method} with {memory} bytes");
            c.verify().unwrap();
            passes.push(schedule.left_passes + schedule.right_passes);
        }
        assert!((batch > 1 || passes[0] > 2) && passes[2] == 2, "{method}: {passes:?}");
        let results = world.client.decrypt_batch(&Stored::open(&world.path("c0")).unwrap().load().unwrap()).unwrap();
        for (result, (a, b)) in results.iter().zip(world.matrices[0].iter().zip(&world.matrices[1])) {
            assert!(result.max_difference(&a.matmul(b).unwrap()) < 1e-4);
        }
    }
}

/// Keys that stay in their file, with room for one: the bits of keys in memory, and what is written of them is the file.
#[test]
fn keys_in_a_file_give_the_same_bits() {
    for (method, shape) in [("module", (30, 40, 30)), ("jiang-bsgs", (8, 8, 8))] {
        let world = World::new(method, shape, 1);
        world.write_keys();
        let path = world.path("keys");
        let one = world.plan.summary().keys.iter().map(|key| key.bytes).max().unwrap() as usize;
        let keys = ServerKeys::open(&world.plan, &path, one).unwrap();
        assert_eq!(keys.id(), world.server.key_id());
        let server = Server::new(&world.plan, keys, 2).unwrap();
        assert_eq!(server.bytes(), 0, "none is read before it is asked for");
        let [a, b] = [0, 1].map(|i| world.client.encrypt(["A", "B"][i], &world.matrices[i][0]).unwrap());
        let [here, there] = [&world.server, &server].map(|s| s.matmul(&a, &b).unwrap().to_bytes().unwrap());
        assert!(here == there, "{method}");
        let file = server.key_file().unwrap();
        assert!(file.loads() > 0 && file.memory() == one);
        assert_eq!(file.all_bytes(), world.server.bytes());
        let mut written = Vec::new();
        server.write_keys_to(&mut written).unwrap();
        assert!(written == fs::read(&path).unwrap());
    }
}

/// A window of a stored matrix.
fn window(stored: &Stored, rows: Range<usize>, cols: Range<usize>) -> Part<'_> {
    Part { node: stored.node(), form: Form::VALUE, rows, cols, held: Held::Stored(stored) }
}

/// Tiles of the result, computed one by one as the tasks of a cluster are, from strips of any width: the blocks of the
/// product in one piece; and each is decrypted alone.
#[test]
fn products_by_parts_have_the_bits_of_those_in_one_piece() {
    for (method, shape) in [("coefficient", (70, 90, 50)), ("tiled", (20, 40, 36))] {
        let world = World::new(method, shape, 1);
        let [a, b] = world.operands();
        let expected = world.server.matmul(&a.load().unwrap(), &b.load().unwrap()).unwrap();
        let expected = Stored::save(&world.plan, &expected, &world.path("expected")).unwrap();
        let [(rows, terms), (_, cols)] = [&a, &b].map(|s| s.reader().grid());
        let plain = world.matrices[0][0].matmul(&world.matrices[1][0]).unwrap();
        for step in [1, 2, terms] {
            let strips: Vec<_> = (0..terms).step_by(step).map(|t| t..terms.min(t + step)).collect();
            for (i, j) in [(0..1, 0..cols), (rows - 1..rows, cols - 1..cols), (0..rows, 0..cols)] {
                let left: Vec<_> = strips.iter().map(|t| window(&a, i.clone(), t.clone())).collect();
                let right: Vec<_> = strips.iter().map(|t| window(&b, t.clone(), j.clone())).collect();
                let made = world.server.matmul_parts(&left, &right).unwrap();
                let places = i.clone().flat_map(|row| j.clone().map(move |col| (row, col)));
                let same = places.zip(&made).all(|((row, col), block)| expected.block(row, col).unwrap() == *block);
                assert!(same && made.len() == i.len() * j.len(), "{method} {step} {i:?} {j:?}");
                let held: Vec<&[u8]> = made.iter().map(Vec::as_slice).collect();
                let part = Part { held: Held::Blocks(&held), ..window(&expected, i.clone(), j.clone()) };
                let shown = world.client.decrypt_part(&part).unwrap();
                let (r, c) = expected.block_shape().unwrap();
                let error = (0..shown.shape().0)
                    .flat_map(|x| (0..shown.shape().1).map(move |y| (x, y)))
                    .map(|(x, y)| (shown.get(x, y) - plain.get(i.start * r + x, j.start * c + y)).abs())
                    .fold(0.0, f64::max);
                assert!(error < 1e-4, "{method} {error}");
            }
        }
        // Half of a contraction, parts in another order, and a result for an operand.
        let half = [window(&a, 0..1, 0..1)];
        let first = world.server.matmul_parts(&half, &[window(&b, 0..1, 0..1)]);
        assert!(terms == 1 || matches!(first, Err(MatrixError::Count { .. })), "{first:?}");
        let swapped = world.server.matmul_parts(&[window(&b, 0..1, 0..1)], &half);
        assert!(matches!(swapped, Err(MatrixError::Expr(ExprError::Shapes { .. }))));
        assert!(world.server.matmul_parts(&[window(&a, 0..rows + 1, 0..terms)], &[]).is_err());
    }
}

/// Sums of blocks, decrypted: those of the elements. A sum is no value of the plan, and damaged blocks are no part.
#[test]
fn parts_add_up() {
    let world = World::new("coefficient", (70, 90, 50), 1);
    let [a, _] = world.operands();
    let (rows, cols) = a.reader().grid();
    let whole = window(&a, 0..rows, 0..cols);
    let twice = world.server.add_parts(&whole, &whole).unwrap();
    let held: Vec<&[u8]> = twice.iter().map(Vec::as_slice).collect();
    let added = Form { added: true, ..Form::VALUE };
    let part = Part { form: added, held: Held::Blocks(&held), ..whole.clone() };
    let shown = world.client.decrypt_part(&part).unwrap();
    let (m, k) = a.shape();
    let x = &world.matrices[0][0];
    assert!((0..m * k).all(|at| (shown.get(at / k, at % k) - 2.0 * x.get(at / k, at % k)).abs() < 1e-4));
    assert!(matches!(sudare_session::Encrypted::of_part(&world.plan, &part), Err(MatrixError::NotPlanned { .. })));
    let mislabelled = Part { form: Form::VALUE, ..part.clone() };
    assert!(matches!(world.client.decrypt_part(&mislabelled), Err(MatrixError::Wire(_))));
    let down = world.server.sum_part(&whole, true).unwrap();
    let held: Vec<&[u8]> = down.iter().map(Vec::as_slice).collect();
    let form = Form { rows: true, ..Form::VALUE };
    let part = Part { form, rows: 0..1, held: Held::Blocks(&held), ..whole.clone() };
    let shown = world.client.decrypt_part(&part).unwrap();
    assert_eq!(shown.shape(), (1, k));
    assert!((0..k).all(|j| (shown.get(0, j) - (0..m).map(|i| x.get(i, j)).sum::<f64>()).abs() < 1e-3));
    assert!(matches!(world.server.sum_part(&part, true), Err(MatrixError::NotPlanned { .. })));
    assert!(matches!(world.server.add_parts(&part, &whole), Err(MatrixError::Expr(ExprError::Shapes { .. }))));
    let mut damaged = down.clone();
    *damaged[0].last_mut().unwrap() ^= 1;
    let held: Vec<&[u8]> = damaged.iter().map(Vec::as_slice).collect();
    let part = Part { held: Held::Blocks(&held), ..part };
    assert!(matches!(world.client.decrypt_part(&part), Err(MatrixError::Wire(_))));
}

/// A store says what it is; a value in memory and its store are the same.
#[test]
fn a_store_is_its_matrix() {
    let world = World::new("coefficient", (50, 40, 30), 1);
    let a = world.client.encrypt("A", &world.matrices[0][0]).unwrap();
    let stored = Stored::save(&world.plan, &a, &world.path("a")).unwrap();
    assert_eq!((stored.shape(), stored.batch(), stored.key()), ((50, 40), 1, world.client.key_id()));
    assert_eq!(stored.plan(), &world.plan);
    assert_eq!(stored.load().unwrap().to_bytes().unwrap(), a.to_bytes().unwrap());
    let public = sudare_session::PublicClient::new(&world.plan, world.client.public_key().unwrap(), 2).unwrap();
    let other = public.encrypt_stored("A", &world.matrices[0], &world.path("p"), QUIET).unwrap();
    assert!(other.bytes() > stored.bytes(), "seeds stand for half of a fresh one");
    assert!(stored.to_string().starts_with("<sudare stored (50, 40) float64 up to 1, "), "{stored}");
    // A method without blocks: one row of ciphertexts.
    let whole = World::new("jiang-bsgs", (6, 6, 6), 1);
    let a = whole.client.encrypt("A", &whole.matrices[0][0]).unwrap();
    let stored = Stored::save(&whole.plan, &a, &whole.path("a")).unwrap();
    assert_eq!(stored.block_shape(), None);
    assert_eq!(stored.load().unwrap().to_bytes().unwrap(), a.to_bytes().unwrap());
}

#[test]
fn what_does_not_go_is_refused_before_anything_is_done() {
    let world = World::new("coefficient", (50, 40, 30), 1);
    let [a, b] = world.operands();
    let path = world.path("c");
    let product = |a: &Stored, b: &Stored, memory| world.server.matmul_stored(a, b, &path, options(memory), QUIET);
    let least = world.least(&a, &b);
    assert!(matches!(product(&a, &b, least - 1), Err(MatrixError::TooLittleMemory { .. })));
    assert!(matches!(product(&b, &a, 1 << 40), Err(MatrixError::NotPlanned { .. })));
    let other = World::new("coefficient", (50, 40, 31), 1);
    let [x, _] = other.operands();
    assert!(matches!(product(&x, &b, 1 << 40), Err(MatrixError::WrongPlan { .. })));
    let twin = World::new("coefficient", (50, 40, 30), 1);
    let [y, _] = twin.operands();
    assert!(matches!(product(&y, &b, 1 << 40), Err(MatrixError::He(_))), "another key");
    assert!(!path.exists());
    product(&a, &b, 1 << 40).unwrap();
    assert!(matches!(product(&a, &b, 1 << 40), Err(MatrixError::Store(StoreError::Exists { .. }))));
    let whole = World::new("jiang-bsgs", (6, 6, 6), 1);
    let none = whole.client.encrypt_stored("A", &whole.matrices[0], &whole.path("a"), QUIET);
    assert!(matches!(none, Err(MatrixError::NotPlanned { .. })));
}

/// A damaged operand ends the product with an error that names its block, and nothing that counts is left.
#[test]
fn a_damaged_operand_is_no_product() {
    let world = World::new("coefficient", (70, 90, 50), 1);
    let [a, b] = world.operands();
    let shard = world.path("b").join("blocks/c/0/0/0");
    let bytes = fs::read(&shard).unwrap();
    let block = b.reader().sizes().block_bytes as usize;
    for at in [130, 5000, block - 1, block + 4096 + 77] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(&shard, damaged).unwrap();
        let path = world.path(&format!("c{at}"));
        let refused = world.server.matmul_stored(&a, &b, &path, options(1 << 40), QUIET);
        assert!(matches!(refused, Err(MatrixError::Store(_) | MatrixError::Wire(_))), "byte {at}: {refused:?}");
        assert!(Stored::open(&path).is_err());
    }
}

/// Starts this program again to multiply `a` and `b` in `folder` to `c`.
fn child(folder: &Path, memory: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child::multiplies", "--nocapture"])
        .env(CHILD, folder)
        .env("SUDARE_STORED_MEMORY", memory.to_string());
    command.stderr(Stdio::null());
    command
}

/// Killed at random moments and taken up again: the bytes of the product that nobody killed.
#[test]
fn killed_products_go_on() {
    let world = World::new("coefficient", (70, 90, 50), 1);
    let [a, b] = world.operands();
    world.write_keys();
    let memory = world.least(&a, &b);
    let expected = world.server.matmul_stored(&a, &b, &world.path("expected"), options(memory), QUIET).unwrap().product;
    let expected = blocks(&expected);
    let rounds = sudare_testkit::setting("SUDARE_KILLS", 6);
    let (mut interrupted, mut kept) = (0, 0);
    for round in 0..rounds {
        let path = world.path("c");
        let mut slow = child(world.folder.path(), memory);
        let mut running = slow.env("SUDARE_STORED_PAUSE", "4").stdout(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        while !path.exists() && started.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(round * 7919 % 97));
        running.kill().unwrap();
        running.wait().unwrap();
        let all = if path.join("blocks/c").exists() { walk(&path.join("blocks/c")) } else { Vec::new() };
        let finished: Vec<_> = all.into_iter().filter(|p| p.ends_with("0")).map(|p| (file(&p), p)).collect();
        interrupted += usize::from(path.exists() && !path.join("zarr.json").exists());
        kept += finished.len();
        // With more memory than before: its tiles are other ones, its shards the same.
        let resumed = OutOfCore { memory: memory + (round % 2) * (memory / 8), existing: Existing::Resume };
        let c = world.server.matmul_stored(&a, &b, &path, resumed, QUIET).unwrap().product;
        assert!(blocks(&c) == expected, "round {round}");
        // A shard that is done again is another file.
        assert!(
            finished.iter().all(|(before, p)| file(p) == *before),
            "round {round}: a finished shard was done again"
        );
        assert!(walk(&path).iter().all(|p| p.extension().is_none_or(|e| e != "partial")), "leftovers");
        fs::remove_dir_all(&path).unwrap();
    }
    assert!(interrupted > 0, "no kill met the work; {kept} shards were kept");
}

/// Which file it is, and when it was written.
fn file(path: &Path) -> (u64, i64, i64) {
    let meta = fs::metadata(path).unwrap();
    (meta.ino(), meta.mtime(), meta.mtime_nsec())
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut out = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if path.is_dir() { out.extend(walk(&path)) } else { out.push(path) }
    }
    out
}

/// The peak of a process that multiplies stays within what it was allowed, and it reads what the schedule says.
#[test]
fn memory_and_reads_are_as_scheduled() {
    let world = World::new("coefficient", (500, 1500, 500), 1);
    let [a, b] = world.operands();
    world.write_keys();
    let allowed = memory(world.least(&a, &b));
    let schedule = world.server.schedule(&a, &b, &world.path("c"), options(allowed)).unwrap();
    assert!(a.bytes() + b.bytes() > allowed && schedule.read_bytes > a.bytes() + b.bytes(), "{schedule}");
    let output = child(world.folder.path(), allowed).stderr(Stdio::inherit()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    let figure = |name: &str| -> u64 {
        let line =
            text.lines().find_map(|l| l.split_once(&format!("{name}="))).unwrap_or_else(|| panic!("{name}: {text}"));
        line.1.trim().parse().unwrap()
    };
    // What the process takes before it multiplies, opened stores and the plan, is not the product's.
    let (before, peak) = (figure("before"), figure("peak"));
    assert!(peak - before <= allowed + allowed / 10, "{before} before, {peak} at most, {allowed} allowed");
    assert_eq!(figure("read"), schedule.read_bytes);
}
