//! A party's ledger: what was answered stays answered, also after `kill -9`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use sudare_ring::random::MaskSeed;
use sudare_ring::{Poly, RnsBasis};
use sudare_rlwe::Ciphertext;
use sudare_rlwe::multiparty::{Digest, Entry, Flooding, Ledger, Opening, Party, PartyError, PrivateShare, Session};
use sudare_rlwe::params::{ParamsLiteral, SchemeTag};
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::wire::Wire;
use sudare_store::{PartyLedger, StoreError};
use sudare_testkit::{Random, sized};
use zeroize::Zeroizing;

const RELEASES: u64 = 1 << 20;

/// Party 0 of three, of whom two decrypt.
fn party() -> (Session, Party) {
    let literal = ParamsLiteral {
        log_n: 9,
        q_bits: vec![60],
        p_bits: vec![],
        digit_limbs: 1,
        secret: SecretDistribution::TernarySum { parties: 3 },
        security: Security::Insecure,
    };
    let session = Session::new(&literal.build(SchemeTag(1)).unwrap(), 2, MaskSeed::from_bytes([1; 32])).unwrap();
    let make = |i: u8| Party::from_seed(&session, i.into(), Zeroizing::new([i + 2; 32])).unwrap();
    let mut first = make(0);
    let own = |party: Party| -> PrivateShare { party.private_shares().remove(0) };
    first.add_private_shares(&[own(make(0)), own(make(1)), own(make(2))]).unwrap();
    (session, first)
}

fn opening(session: &Session, number: u64, parties: &[u32]) -> Opening {
    let basis: &RnsBasis = session.params().q();
    let part = |seed: u64| Poly::from_words(basis, &Random(seed).words(basis.limb(0).q(), 512)).unwrap();
    let parts = vec![part(2 * number), part(2 * number + 1)];
    let c = Ciphertext::from_parts(session.params(), session.key(), parts, 0).unwrap();
    let flooding = Flooding::new(ReleasePolicy::new(RELEASES, 20).unwrap(), 1.0).unwrap();
    Opening::new(session, &c, parties, flooding, (0, 1)).unwrap()
}

fn answer(party: &Party, opening: &Opening, ledger: &mut dyn Ledger) -> Result<String, PartyError> {
    let bytes = party.decryption_share(opening, ledger)?.to_bytes().unwrap();
    Ok(blake3::hash(&bytes).to_hex().to_string())
}

#[test]
fn a_rehearsal_refuses_what_the_ledger_would_and_keeps_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (session, party) = party();
    let mut ledger = PartyLedger::create(&folder.path().join("ledger"), session.id(), 0).unwrap();
    let [first, other] = [[0, 1], [0, 2]].map(|parties| opening(&session, 1, &parties));
    let said = answer(&party, &first, &mut ledger.rehearsal()).unwrap();
    assert_eq!(ledger.releases(), 0);
    answer(&party, &other, &mut ledger.rehearsal()).unwrap();
    assert_eq!(answer(&party, &first, &mut ledger).unwrap(), said);
    assert_eq!(answer(&party, &first, &mut ledger.rehearsal()).unwrap(), said);
    let refused = answer(&party, &other, &mut ledger.rehearsal()).unwrap_err();
    assert!(matches!(refused, PartyError::Answered { party: 0 }), "{refused}");
    // Of answers that come together the last may be one too many.
    let empty = PartyLedger::create(&folder.path().join("empty"), session.id(), 0).unwrap();
    let policy = Some(ReleasePolicy::new(1, 20).unwrap());
    let entry =
        |i| Entry { session: session.id(), party: 0, subject: Digest([i; 32]), question: Digest([9; 32]), policy };
    let mut rehearsal = empty.rehearsal();
    rehearsal.admit(&entry(1)).unwrap();
    assert!(matches!(rehearsal.admit(&entry(2)), Err(PartyError::UsedUp { .. })));
    empty.rehearsal().admit(&entry(2)).unwrap();
}

/// The process that is killed: it answers one ciphertext after another, and says each answer when it is given.
#[test]
#[ignore = "a process that another test starts and kills"]
fn a_party_that_answers_until_it_is_killed() {
    let folder = std::env::var("SUDARE_TEST_LEDGER").unwrap();
    let (session, party) = party();
    let mut ledger = PartyLedger::open(Path::new(&folder), session.id(), 0).unwrap();
    let first: u64 = std::env::var("SUDARE_TEST_FIRST").unwrap().parse().unwrap();
    let mut out = std::io::stdout().lock();
    for number in first.. {
        let answer = answer(&party, &opening(&session, number, &[0, 1]), &mut ledger).unwrap();
        writeln!(out, "answer {number} {answer}").unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn what_a_killed_party_sent_it_sends_again_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let (session, party) = party();
    drop(PartyLedger::create(&path, session.id(), 0).unwrap());
    let mut sent: BTreeMap<u64, String> = BTreeMap::new();
    let mut random = Random(11);
    for _ in 0..sized(3, 40) {
        let first = sent.len() as u64;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ledger::a_party_that_answers_until_it_is_killed", "--ignored", "--nocapture"])
            .env("SUDARE_TEST_LEDGER", &path)
            .env("SUDARE_TEST_FIRST", first.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let wanted = 1 + random.index(12);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let parse = |line: String| {
            let mut words = line.split("answer ").nth(1)?.split(' ').map(str::to_owned);
            Some((words.next()?.parse::<u64>().ok()?, words.next()?))
        };
        sent.extend(lines.by_ref().filter_map(parse).take(wanted));
        // SIGKILL, in the midst of an answer; what it said meanwhile was sent as well.
        child.kill().unwrap();
        child.wait().unwrap();
        sent.extend(lines.filter_map(parse).filter(|(_, answer)| answer.len() == 64));
        let mut ledger = PartyLedger::open(&path, session.id(), 0).unwrap();
        assert!(ledger.releases() >= sent.len() as u64);
        for (number, before) in &sent {
            let again = answer(&party, &opening(&session, *number, &[0, 1]), &mut ledger).unwrap();
            assert_eq!(again, *before, "the same bytes again");
            let other = answer(&party, &opening(&session, *number, &[0, 2]), &mut ledger);
            assert_eq!(other, Err(PartyError::Answered { party: 0 }), "and no others");
        }
        let count = ledger.releases();
        // The one that was not said may be there: asked again, it is admitted, and then counted once.
        let next = sent.len() as u64;
        sent.insert(next, answer(&party, &opening(&session, next, &[0, 1]), &mut ledger).unwrap());
        assert!(ledger.releases() <= count + 1);
    }
    assert!(sent.len() >= 6);
}

/// A process of one thread that forks: both sides have the open ledger, and each is asked about one ciphertext, with another set.
#[test]
#[ignore = "a process that another test starts, since it forks"]
fn a_party_that_forks() {
    let (session, party) = party();
    let folder = std::env::var("SUDARE_TEST_LEDGER").unwrap();
    let mut ledger = PartyLedger::open(Path::new(&folder), session.id(), 0).unwrap();
    let parent = std::process::id();
    let (ours, theirs) = sudare_testkit::process::in_both(|| {
        let others = if std::process::id() == parent { [0, 1] } else { [0, 2] };
        let said = answer(&party, &opening(&session, 1, &others), &mut ledger);
        match said {
            Ok(_) => b"answered".to_vec(),
            Err(refusal) => format!("{refusal}").into_bytes(),
        }
    });
    let theirs = String::from_utf8(theirs).unwrap();
    assert_eq!(ours, b"answered");
    assert!(theirs.contains("the ledger of answers failed"), "{theirs}");
    assert_eq!(ledger.releases(), 1);
}

#[test]
fn a_fork_answers_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let (session, _) = party();
    drop(PartyLedger::create(&path, session.id(), 0).unwrap());
    let forked = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ledger::a_party_that_forks", "--ignored", "--test-threads=1"])
        .env("SUDARE_TEST_LEDGER", &path)
        .output()
        .unwrap();
    assert!(forked.status.success(), "{}", String::from_utf8_lossy(&forked.stdout));
    assert_eq!(std::fs::read_dir(path.join("answers")).unwrap().count(), 1);
}

/// Somebody removes the lock file, and a second process opens the ledger: the first one's answers stay, and it gives no others.
#[test]
fn a_removed_lock_leaves_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let (session, party) = party();
    let mut first = PartyLedger::create(&path, session.id(), 0).unwrap();
    answer(&party, &opening(&session, 1, &[0, 1]), &mut first).unwrap();
    std::fs::remove_file(path.join("lock")).unwrap();
    let refused = answer(&party, &opening(&session, 2, &[0, 1]), &mut first);
    assert!(matches!(refused, Err(PartyError::Ledger { .. })), "{refused:?}");
    let mut second = PartyLedger::open(&path, session.id(), 0).unwrap();
    assert!(matches!(answer(&party, &opening(&session, 2, &[0, 1]), &mut first), Err(PartyError::Ledger { .. })));
    let other = answer(&party, &opening(&session, 1, &[0, 2]), &mut second);
    assert_eq!(other, Err(PartyError::Answered { party: 0 }));
    // An entry that appeared meanwhile is not written over: it is read, and is the answer.
    let entry = std::fs::read_dir(path.join("answers")).unwrap().next().unwrap().unwrap().path();
    let kept = std::fs::read(&entry).unwrap();
    std::fs::remove_file(&entry).unwrap();
    drop(second);
    let mut third = PartyLedger::open(&path, session.id(), 0).unwrap();
    std::fs::write(&entry, &kept).unwrap();
    let other = answer(&party, &opening(&session, 1, &[0, 2]), &mut third);
    assert_eq!(other, Err(PartyError::Answered { party: 0 }));
    assert_eq!((std::fs::read(&entry).unwrap(), third.releases()), (kept, 1));
}

#[test]
fn a_ledger_belongs_to_one_party_and_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let (session, party) = party();
    let missing = PartyLedger::open(&path, session.id(), 0);
    assert!(matches!(missing, Err(StoreError::NotAStore { .. })), "a lost ledger is not made anew in silence");
    let mut ledger = PartyLedger::create(&path, session.id(), 0).unwrap();
    assert!(matches!(PartyLedger::open(&path, session.id(), 0), Err(StoreError::Busy { .. })));
    let policy = ReleasePolicy::new(2, 20).unwrap();
    let open = |number: u64, policy: ReleasePolicy| {
        let basis = session.params().q();
        let part = |seed: u64| Poly::from_words(basis, &Random(seed).words(basis.limb(0).q(), 512)).unwrap();
        let c =
            Ciphertext::from_parts(session.params(), session.key(), vec![part(number), part(number + 50)], 0).unwrap();
        Opening::new(&session, &c, &[0, 2], Flooding::new(policy, 1.0).unwrap(), (0, 1)).unwrap()
    };
    answer(&party, &open(1, policy), &mut ledger).unwrap();
    let wider = ReleasePolicy::new(3, 20).unwrap();
    assert_eq!(
        answer(&party, &open(2, wider), &mut ledger),
        Err(PartyError::OtherPolicy { declared: policy, wanted: wider })
    );
    answer(&party, &open(2, policy), &mut ledger).unwrap();
    assert_eq!(answer(&party, &open(3, policy), &mut ledger), Err(PartyError::UsedUp { policy }));
    answer(&party, &open(1, policy), &mut ledger).unwrap();
    drop(ledger);
    assert!(matches!(PartyLedger::create(&path, session.id(), 0), Err(StoreError::Exists { .. })));
    assert!(matches!(PartyLedger::open(&path, session.id(), 1), Err(StoreError::OtherWork { .. })));
    let again = PartyLedger::open(&path, session.id(), 0).unwrap();
    assert_eq!((again.releases(), again.policy()), (2, Some(policy)));
    drop(again);
    // Every byte of an entry counts, and so does its name.
    let answers = path.join("answers");
    let entry = std::fs::read_dir(&answers).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&entry).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        std::fs::write(&entry, damaged).unwrap();
        assert!(matches!(PartyLedger::open(&path, session.id(), 0), Err(StoreError::Damaged { .. })), "byte {at}");
    }
    std::fs::write(&entry, &bytes).unwrap();
    std::fs::copy(&entry, answers.join("0".repeat(64))).unwrap();
    assert!(matches!(PartyLedger::open(&path, session.id(), 0), Err(StoreError::Damaged { .. })));
    std::fs::remove_file(answers.join("0".repeat(64))).unwrap();
    // A file that a killed process left half written is no answer.
    std::fs::write(answers.join(".half.part"), b"half").unwrap();
    assert_eq!(PartyLedger::open(&path, session.id(), 0).unwrap().releases(), 2);
}
