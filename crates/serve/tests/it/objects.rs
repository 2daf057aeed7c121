//! What a tenant sees and removes of its own objects.

use crate::common;
use crate::service::{exact_job, send};
use common::*;
use std::io::Cursor;
use sudare_ring::ErrorKind;
use sudare_serve::{Digest, Limits, Patience, RemoteError, Request, Settings};

#[test]
fn a_tenant_makes_room_by_what_it_removes() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let limits = Limits { tenant_bytes: 3000, ..Limits::default() };
    let settings = Settings { limits, ..Settings::new(folder.path()) };
    let server = Running::start(&settings, &tenants);
    let (one, two) = (server.remote(&tenants.one), server.remote(&tenants.two));
    assert!(one.objects().unwrap().is_empty());
    let (first, second, third) = (vec![1; 1200], b"{}".to_vec(), vec![2; 2500]);
    let [a, b] = [&first, &second].map(|bytes| {
        let digest = send(&one, bytes);
        // Times of files may be as coarse as this.
        std::thread::sleep(std::time::Duration::from_millis(20));
        digest
    });
    let refused = |sent: Result<Digest, RemoteError>| match sent {
        Err(RemoteError::Refused(problem)) => problem.kind(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(one.send(&mut Cursor::new(&third))), ErrorKind::Quota);
    let listed = |remote: &sudare_serve::Remote| {
        remote.objects().unwrap().into_iter().map(|o| (o.digest, o.kind, o.bytes)).collect::<Vec<_>>()
    };
    assert_eq!(listed(&one), [(a, "a plain value".to_owned(), 1200), (b, "a plan".to_owned(), 2)]);
    // One that is read was used last.
    one.fetch(a, &mut std::io::sink()).unwrap();
    let all = one.objects().unwrap();
    assert_eq!(all.iter().map(|o| o.digest).collect::<Vec<_>>(), [b, a]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    assert!(all[0].used < all[1].used && (now - 60_000..=now + 1000).contains(&all[1].used), "{all:?} {now}");
    // Nobody else sees or removes them.
    assert!(two.objects().unwrap().is_empty());
    assert!(matches!(two.delete_object(a), Err(RemoteError::Refused(p)) if p.kind() == ErrorKind::NotFound));
    assert_eq!(server.raw("", "GET", "/v1/objects", "", b"").status, 401);
    one.delete_object(a).unwrap();
    assert_eq!(send(&one, &third), Digest::of(&third));
    assert_eq!(listed(&one).iter().map(|o| o.2).sum::<u64>(), 2502);
    // What has arrived of an upload takes room too, and goes in the same way.
    let part = Digest::of(&[7; 400]);
    let headers = "content-length: 100\r\ncontent-range: bytes 0-99/400\r\n";
    let path = format!("/v1/objects/{part}");
    assert_eq!(server.raw(tenants.one.secret(), "PUT", &path, headers, &[7; 100]).status, 202);
    assert!(listed(&one).contains(&(part, "an unfinished upload".into(), 100)));
    one.delete_object(part).unwrap();
    assert!(listed(&one).iter().all(|o| o.0 != part));
    server.stop();
}

#[test]
fn what_is_in_use_stays() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let server = Running::start(&Settings { workers: 0, ..Settings::new(folder.path()) }, &tenants);
    let remote = server.remote(&tenants.one).with_patience(Patience { tries: 1, ..Patience::default() });
    let (request, ..) = exact_job(&remote);
    let Request::Compute { plan, operands, .. } = &request else { unreachable!() };
    let job = remote.submit(&request, None).unwrap();
    let message = send(&remote, b"said");
    remote.post("room", "message", message).unwrap();
    for (digest, words) in [(*plan, "a job that waits"), (operands[0].object, "a job that waits"), (message, "a room")]
    {
        match remote.delete_object(digest) {
            Err(RemoteError::Refused(problem)) => {
                assert!(problem.kind() == ErrorKind::State && problem.detail().contains(words), "{problem}");
            }
            other => panic!("{other:?}"),
        }
    }
    let kinds: Vec<String> = remote.objects().unwrap().into_iter().map(|object| object.kind).collect();
    assert_eq!(kinds.len(), 4);
    remote.delete_job(&job.id).unwrap();
    remote.delete_object(*plan).unwrap();
    assert_eq!(remote.objects().unwrap().len(), 3);
    server.stop();
}
