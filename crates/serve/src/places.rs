//! Places of connections: by address until one shows a token, by tenant from then on.
//!
//! Nobody waits for a place. A connection without a token that comes when its address, or all of them together, has as many
//! as may be takes the place of the oldest; so whoever has a token gets in and shows it, however many others stay. Those
//! who showed one keep their places, of which the others get none.

use crate::problem::Problem;
use crate::settings::Limits;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sudare_ring::ErrorKind;
use tokio::sync::Notify;

/// All places.
pub(crate) struct Places {
    connections: usize,
    unauthenticated: usize,
    of_address: usize,
    of_tenant: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    next: u64,
    /// Connections without a token by their numbers, so the oldest first.
    unauthenticated: BTreeMap<u64, (IpAddr, Arc<Notify>)>,
    tenants: HashMap<Arc<str>, usize>,
}

/// A connection's place; dropped, it is free.
pub(crate) struct Place {
    /// From where the connection comes.
    pub address: IpAddr,
    places: Arc<Places>,
    number: u64,
    leave: Arc<Notify>,
    tenant: Mutex<Option<Arc<str>>>,
}

impl Places {
    pub fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            connections: limits.connections,
            unauthenticated: limits.unauthenticated.min(limits.connections / 2),
            of_address: limits.address_unauthenticated,
            of_tenant: limits.tenant_connections,
            taken: Mutex::default(),
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from an address, if need be an older one's.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Arc<Place> {
        let mut taken = self.taken();
        let mut by_address: HashMap<IpAddr, usize> = HashMap::new();
        taken.unauthenticated.values().for_each(|(from, _)| *by_address.entry(*from).or_default() += 1);
        let crowded = match by_address.get(&address) {
            Some(own) if *own >= self.of_address => Some(address),
            // The address that has most gives one.
            _ if taken.unauthenticated.len() >= self.unauthenticated => {
                by_address.into_iter().max_by_key(|(_, count)| *count).map(|(from, _)| from)
            }
            _ => None,
        };
        let oldest =
            crowded.and_then(|from| taken.unauthenticated.iter().find(|(_, (a, _))| *a == from).map(|(n, _)| *n));
        if let Some((_, leave)) = oldest.and_then(|number| taken.unauthenticated.remove(&number)) {
            leave.notify_one();
        }
        let (number, leave) = (taken.next, Arc::new(Notify::new()));
        taken.next += 1;
        taken.unauthenticated.insert(number, (address, leave.clone()));
        Arc::new(Place { address, places: self.clone(), number, leave, tenant: Mutex::default() })
    }
}

impl Place {
    /// Waits until a newer connection has taken the place.
    pub async fn lost(&self) {
        self.leave.notified().await;
    }

    /// Makes it a tenant's: that of the last token shown.
    pub fn belongs_to(&self, tenant: &Arc<str>) -> Result<(), Problem> {
        let mut own = self.tenant.lock().unwrap_or_else(PoisonError::into_inner);
        if own.as_ref() == Some(tenant) {
            return Ok(());
        }
        let (places, mut taken) = (&self.places, self.places.taken());
        let (here, all) = (taken.tenants.get(tenant).copied().unwrap_or(0), taken.tenants.values().sum::<usize>());
        if here >= places.of_tenant {
            let words = format!("{here} connections of this tenant are open, which is the most at once; close one");
            return Err(Problem::new(ErrorKind::TooMany, words).retry(1));
        }
        if own.is_none() && all >= places.connections - places.unauthenticated {
            return Err(Problem::new(
                ErrorKind::Busy,
                "as many connections are open as this server takes; try again later",
            )
            .retry(1));
        }
        taken.unauthenticated.remove(&self.number);
        taken.leave(own.as_ref());
        *taken.tenants.entry(tenant.clone()).or_default() += 1;
        *own = Some(tenant.clone());
        Ok(())
    }
}

impl Taken {
    fn leave(&mut self, tenant: Option<&Arc<str>>) {
        let Some(tenant) = tenant else { return };
        if let Some(count) = self.tenants.get_mut(tenant) {
            *count -= 1;
            if *count == 0 {
                self.tenants.remove(tenant);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let tenant = self.tenant.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let mut taken = self.places.taken();
        taken.unauthenticated.remove(&self.number);
        taken.leave(tenant.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_without_a_token_gives_way_and_no_tenant_does() {
        let limits = Limits {
            connections: 8,
            unauthenticated: 4,
            address_unauthenticated: 2,
            tenant_connections: 1,
            ..Limits::default()
        };
        let places = Places::new(&limits);
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let there = |place: &Place| places.taken().unauthenticated.contains_key(&place.number);
        let first: Vec<_> = (0..3).map(|_| places.enter(address(1))).collect();
        assert_eq!(first.iter().map(|p| there(p)).collect::<Vec<_>>(), [false, true, true]);
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        first[1].belongs_to(&one).unwrap();
        // All places without a token: of the address with most, the oldest.
        let second: Vec<_> = (2..6).map(|i| places.enter(address(i / 2))).collect();
        assert_eq!(first.iter().map(|p| there(p)).collect::<Vec<_>>(), [false, false, false]);
        assert_eq!(places.taken().unauthenticated.len(), 4);
        assert_eq!(second[0].belongs_to(&one).unwrap_err().kind(), ErrorKind::TooMany);
        second[0].belongs_to(&two).unwrap();
        second[1].belongs_to(&"three".into()).unwrap();
        second[2].belongs_to(&"four".into()).unwrap();
        assert_eq!(second[3].belongs_to(&"five".into()).unwrap_err().kind(), ErrorKind::Busy);
        // A connection that shows another token changes hands.
        drop(first);
        second[0].belongs_to(&one).unwrap();
        assert_eq!(places.taken().tenants.get(&one), Some(&1));
        drop(second);
        assert!(places.taken().unauthenticated.is_empty() && places.taken().tenants.is_empty());
    }
}
