//! `quintet cache`: a cache that processes share, from the command line.

mod args;
mod keys;
mod manage;
mod more;
mod place;
mod quota;
mod space;
mod stat;
mod top;
mod units;

pub(crate) use args::CacheArgs;

use crate::fail::{Exit, Fail};
use args::Verb;

/// Runs a subcommand.
pub(crate) fn run(args: &CacheArgs) -> Result<Exit, Fail> {
    place::allow_any_owner(args.any_owner, args.any_store);
    match &args.verb {
        Verb::Create(args) => manage::create(args),
        Verb::Set(args) => keys::set(args),
        Verb::Get(args) => keys::get(args),
        Verb::Del(args) => keys::del(args),
        Verb::Incr(args) => keys::incr(args),
        Verb::Add(args) => more::add(args),
        Verb::Touch(args) => more::touch(args),
        Verb::Ttl(args) => more::ttl(args),
        Verb::Cas(args) => more::cas(args),
        Verb::Mget(args) => more::mget(args),
        Verb::Mset(args) => more::mset(args),
        Verb::Dump(args) => more::dump(args),
        Verb::Load(args) => more::load(args),
        Verb::Scan(args) => keys::scan(args),
        Verb::Stat(args) => stat::run(args),
        Verb::Top(args) => top::run(args),
        Verb::Check(args) => manage::check(args),
        Verb::Evict(args) => manage::evict(args),
        Verb::Quota(args) => quota::run(args),
        Verb::Flush(args) => manage::flush(args),
        Verb::Remove(args) => manage::remove(args),
        Verb::Ls(args) => manage::ls(args),
    }
}
