//! How many haplotypes a tenant asks about in a panel: counted for good, whatever its keys, and whatever ends the server.

use crate::common;
use crate::service::{refused, send, toy, toy_panel};
use common::*;
use std::path::Path;
use std::sync::Barrier;
use sudare_genome::{Client, KeyPlan, Panel, Protocol, Question};
use sudare_ring::{ErrorKind, Threads};
use sudare_serve::{JobView, Limits, Remote, RemoteError, Request, ServedPanel, Settings, Token, Tokens};

/// A server of the toy panel with a limit. Without workers accepted searches wait.
fn start(folder: &Path, tenants: &Tenants, most_queries: Option<u64>, workers: usize) -> Running {
    let panels = vec![ServedPanel { name: "toy".into(), panel: toy_panel(folder), padding: None, most_queries }];
    let limits = Limits { tenant_jobs: 100, ..Limits::default() };
    let settings = Settings { workers, limits, ..Settings::new(folder.join("data")) };
    Running::with(&settings, tenants, panels, None)
}

/// A search about so many haplotypes, with a new key.
fn search(folder: &Path, remote: &Remote, haplotypes: usize) -> Request {
    let sites = Panel::open(&folder.join("toy.panel")).unwrap().description().unwrap();
    let plan = match haplotypes {
        1 => KeyPlan::trie(),
        _ => KeyPlan { protocol: Protocol::Simd, sites: 4, hidden: false },
    };
    let one = |h| Question::new(&sites, 3, (0..4).map(|k| toy(h, 3 + k)).collect(), 1).unwrap();
    let questions: Vec<Question> = (0..haplotypes).map(one).collect();
    let (query, _) = Threads::new(1).run(|| Client::generate(plan).unwrap().query(&sites, &questions, false)).unwrap();
    Request::Search { panel: "toy".into(), keys: None, query: send(remote, &query), pad: None }
}

/// Haplotypes asked about, and the most, as the tenant sees them.
fn counted(remote: &Remote) -> (u64, Option<u64>) {
    let panel = &remote.config().unwrap()["panels"][0];
    (panel["asked"].as_u64().unwrap(), panel["most_queries"].as_u64())
}

/// That a search is over the limit, and said to be.
#[track_caller]
fn over(asked: Result<JobView, RemoteError>, most: u64, found: u64) {
    match asked {
        Err(RemoteError::Refused(problem)) => {
            assert_eq!(problem.kind(), ErrorKind::Parameters);
            assert!(problem.detail().contains(&format!("is {most}, and {found} was asked for")), "{problem}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tenant_asks_about_so_many_haplotypes_whatever_its_keys() {
    let (folder, mut tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    // A second token of the same tenant.
    let again = Token::new().unwrap();
    let lines = [
        tenants.one.line("one", Some("a"), None).unwrap(),
        again.line("one", Some("b"), None).unwrap(),
        tenants.two.line("two", None, None).unwrap(),
    ];
    tenants.tokens = Tokens::read(&lines.join("\n")).unwrap();
    let folder = folder.path();
    let server = start(folder, &tenants, Some(5), 0);
    let [one, again, two] = [&tenants.one, &again, &tenants.two].map(|token| server.remote(token));
    assert_eq!(counted(&one), (0, Some(5)));
    // A batch counts by its haplotypes, and a request that is sent again does not.
    let batch = search(folder, &one, 3);
    let first = one.submit(&batch, Some("once")).unwrap();
    assert_eq!(one.submit(&batch, Some("once")).unwrap().id, first.id);
    assert_eq!(counted(&one), (3, Some(5)));
    // The same query under another key of the request is another search.
    one.submit(&search(folder, &one, 1), None).unwrap();
    over(one.submit(&batch, Some("again")), 5, 7);
    let last = search(folder, &one, 1);
    again.submit(&last, Some("last")).unwrap();
    // What was accepted stays so; nothing more is, under whatever key and token.
    assert!(one.submit(&last, Some("last")).is_ok());
    for remote in [&one, &again] {
        over(remote.submit(&search(folder, remote, 1), None), 5, 6);
        assert_eq!(counted(remote), (5, Some(5)));
    }
    assert_eq!(counted(&two), (0, Some(5)));
    two.submit(&search(folder, &two, 3), None).unwrap();
    // Neither a restart nor the end of all records begins anew.
    server.stop();
    let server = start(folder, &tenants, Some(5), 0);
    let one = server.remote(&tenants.one);
    over(one.submit(&search(folder, &one, 1), None), 5, 6);
    let jobs = server.ask_for(&tenants.one, "GET", "/v1/jobs", b"").body;
    let jobs: Vec<serde_json::Value> = serde_json::from_slice(&jobs).unwrap();
    assert_eq!(jobs.len(), 3);
    for id in jobs.iter().map(|job| job["id"].as_str().unwrap()) {
        // Cancelled, and then forgotten.
        (0..2).for_each(|_| one.delete_job(id).unwrap());
    }
    assert_eq!(std::fs::read_dir(folder.join("data/one/jobs")).unwrap().count(), 0);
    over(one.submit(&search(folder, &one, 1), None), 5, 6);
    server.stop();
    let server = start(folder, &tenants, Some(6), 0);
    let (one, two) = (server.remote(&tenants.one), server.remote(&tenants.two));
    assert_eq!((counted(&one), counted(&two)), ((5, Some(6)), (3, Some(6))));
    one.submit(&search(folder, &one, 1), None).unwrap();
    over(one.submit(&search(folder, &one, 1), None), 6, 7);
    server.stop();
    // Without a limit they are counted all the same.
    let server = start(folder, &tenants, None, 0);
    let one = server.remote(&tenants.one);
    one.submit(&search(folder, &one, 1), None).unwrap();
    assert_eq!(counted(&one), (7, None));
    server.stop();
}

#[test]
fn searches_at_once_are_not_over_the_limit() {
    const MOST: u64 = 8;
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let folder = folder.path();
    let server = start(folder, &tenants, Some(MOST), 1);
    let remote = server.remote(&tenants.one);
    let (request, begin) = (search(folder, &remote, 1), Barrier::new(24));
    let accepted = std::thread::scope(|s| {
        let ask = || {
            begin.wait();
            match remote.submit(&request, None) {
                Ok(view) => Some(view.id),
                Err(RemoteError::Refused(problem)) if problem.kind() == ErrorKind::Parameters => None,
                Err(other) => panic!("{other}"),
            }
        };
        let all: Vec<_> = (0..24).map(|_| s.spawn(ask)).collect();
        all.into_iter().filter_map(|asked| asked.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(accepted.len() as u64, MOST);
    for id in &accepted {
        remote.wait(id, &|_, _| ()).unwrap();
    }
    assert_eq!(counted(&remote), (MOST, Some(MOST)));
    server.stop();
}

#[test]
fn what_was_accepted_counts_once_whatever_ends_the_server() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let folder = folder.path();
    let server = start(folder, &tenants, Some(5), 0);
    let remote = server.remote(&tenants.one);
    let request = search(folder, &remote, 1);
    // What is no query of this panel is refused and not counted.
    let Request::Search { query, .. } = request else { unreachable!() };
    let other = |panel: &str, query| Request::Search { panel: panel.into(), keys: None, query, pad: None };
    assert_eq!(refused(&remote, &other("other", query)), ErrorKind::NotFound);
    assert_eq!(refused(&remote, &other("toy", send(&remote, b"{}"))), ErrorKind::Format);
    assert_eq!(counted(&remote), (0, Some(5)));
    // Nor is one whose record cannot be written.
    let (jobs, away) = (folder.join("data/one/jobs"), folder.join("away"));
    std::fs::rename(&jobs, &away).unwrap();
    assert_eq!(refused(&remote, &request), ErrorKind::Io);
    std::fs::rename(&away, &jobs).unwrap();
    assert_eq!(counted(&remote), (0, Some(5)));
    // A total that could not be written is, before the record goes.
    let (gone, totals) = (remote.submit(&request, None).unwrap().id, folder.join("data/one/queries.json"));
    std::fs::create_dir(&totals).unwrap();
    remote.delete_job(&gone).unwrap();
    assert!(remote.delete_job(&gone).is_err());
    std::fs::remove_dir(&totals).unwrap();
    remote.delete_job(&gone).unwrap();
    let (lost, kept) = (search(folder, &remote, 1), search(folder, &remote, 1));
    let kept = remote.submit(&kept, None).unwrap().id;
    let view = remote.submit(&lost, Some("lost")).unwrap();
    server.stop();
    // A server that was killed before the second one was on the disk: nobody knows that it was accepted, and it is asked again.
    let record = |id: &str| folder.join(format!("data/one/jobs/{id}.json"));
    std::fs::remove_file(record(&view.id)).unwrap();
    let server = start(folder, &tenants, Some(5), 1);
    let remote = server.remote(&tenants.one);
    assert_eq!(counted(&remote), (2, Some(5)));
    remote.wait(&kept, &|_, _| ()).unwrap();
    let again = remote.submit(&lost, Some("lost")).unwrap();
    assert_eq!((again.id.as_str(), counted(&remote)), (view.id.as_str(), (3, Some(5))));
    remote.wait(&again.id, &|_, _| ()).unwrap();
    let last = remote.submit(&search(folder, &remote, 1), None).unwrap().id;
    remote.wait(&last, &|_, _| ()).unwrap();
    over(remote.submit(&search(folder, &remote, 2), None), 5, 6);
    server.stop();
    // Power that fails while records of jobs that began are written leaves them empty.
    for id in [&kept, &again.id, &last] {
        std::fs::write(record(id), b"").unwrap();
    }
    let server = start(folder, &tenants, Some(5), 1);
    let remote = server.remote(&tenants.one);
    assert_eq!(counted(&remote), (4, Some(5)));
    server.stop();
    // Totals that cannot be read are an error, and not none.
    std::fs::write(&totals, b"").unwrap();
    let settings = Settings::new(folder.join("data"));
    let opened = sudare_serve::Service::open(settings, tenants.tokens.clone(), Default::default(), |_| Ok(()));
    assert!(opened.unwrap_err().to_string().contains("queries.json of one"));
}
