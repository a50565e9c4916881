//! All that a simulated machine knows: what readers see, and what is on the medium.

use super::content::Content;
use super::fault::{Counts, Plan};
use super::names::{Inode, Map, Names};
use super::random::{Kept, Random};
use crate::error::{Holder, Reason};
use crate::interface::{Entry, EntryKind, Lock};
use crate::path;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

const ROOT: Inode = 0;

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) random: Random,
    pub(super) counts: Counts,
    pub(super) plan: Plan,
    pub(super) stopped: bool,
    pub(super) short_writes: bool,
    pub(super) capacity: Option<u64>,
    /// The most bytes that were asked for at once.
    pub(super) longest_read: u64,
    nodes: BTreeMap<Inode, Node>,
    next: Inode,
    locks: BTreeMap<Inode, Locks>,
}

#[derive(Clone, Debug)]
struct Node {
    /// The names that it has now.
    names: u64,
    /// The handles that are open.
    handles: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    File(Content),
    Directory(Names),
}

#[derive(Clone, Debug, Default)]
struct Locks {
    writer: Option<u32>,
    readers: u64,
}

impl State {
    /// A disk with nothing but the database's directory.
    pub(super) fn new(seed: u64) -> Self {
        let root = Node::new(Kind::Directory(Names::default()));
        State {
            random: Random::new(seed),
            counts: Counts::default(),
            plan: Plan::default(),
            stopped: false,
            short_writes: false,
            capacity: None,
            longest_read: 0,
            nodes: BTreeMap::from([(ROOT, Node { names: 1, ..root })]),
            next: ROOT + 1,
            locks: BTreeMap::new(),
        }
    }

    // ---- names ----

    fn lookup(&self, path: &Path) -> Result<Inode, Reason> {
        let mut inode = ROOT;
        for name in path::names(path)? {
            inode = self.directory(inode)?.get(name).ok_or(Reason::NotFound)?;
        }
        Ok(inode)
    }

    /// The directory that a path's last name is in, and the name.
    fn above<'a>(&self, path: &'a Path) -> Result<(Inode, &'a OsStr), Reason> {
        let (above, name) = path::split(path)?;
        let above = self.lookup(above)?;
        self.directory(above)?;
        Ok((above, name))
    }

    fn directory(&self, inode: Inode) -> Result<&Names, Reason> {
        match &self.nodes[&inode].kind {
            Kind::Directory(names) => Ok(names),
            Kind::File(_) => Err(Reason::NotADirectory),
        }
    }

    fn directory_mut(&mut self, inode: Inode) -> &mut Names {
        match &mut self.node(inode).kind {
            Kind::Directory(names) => names,
            Kind::File(_) => panic!("inode {inode} is a file"),
        }
    }

    fn node(&mut self, inode: Inode) -> &mut Node {
        self.nodes
            .get_mut(&inode)
            .expect("inodes are kept as long as there is a way to them")
    }

    fn is_directory(&self, inode: Inode) -> bool {
        matches!(self.nodes[&inode].kind, Kind::Directory(_))
    }

    /// Gives a new node a name.
    fn add(&mut self, above: Inode, name: &OsStr, kind: Kind) -> Inode {
        let inode = self.next;
        self.next += 1;
        self.nodes.insert(
            inode,
            Node {
                names: 1,
                ..Node::new(kind)
            },
        );
        self.directory_mut(above).set(name, inode);
        inode
    }

    pub(super) fn create(&mut self, path: &Path) -> Result<Inode, Reason> {
        let (above, name) = self.above(path)?;
        if self.directory(above)?.get(name).is_some() {
            return Err(Reason::AlreadyExists);
        }
        Ok(self.add(above, name, Kind::File(Content::default())))
    }

    pub(super) fn open(&self, path: &Path) -> Result<Inode, Reason> {
        let inode = self.lookup(path)?;
        if self.is_directory(inode) {
            Err(Reason::IsADirectory)
        } else {
            Ok(inode)
        }
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<(), Reason> {
        path::common(from, to)?;
        let (above, from) = self.above(from)?;
        let (_, to) = path::split(to)?;
        let inode = self.directory(above)?.get(from).ok_or(Reason::NotFound)?;
        if let Some(replaced) = self.directory(above)?.get(to) {
            if replaced == inode {
                return Ok(());
            }
            match (self.is_directory(inode), self.is_directory(replaced)) {
                (true, false) => return Err(Reason::NotADirectory),
                (false, true) => return Err(Reason::IsADirectory),
                (true, true) if !self.directory(replaced)?.now().is_empty() => {
                    return Err(Reason::NotEmpty);
                }
                _ => self.node(replaced).names -= 1,
            }
        }
        self.directory_mut(above).rename(from, to, inode);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> Result<(), Reason> {
        if self.is_directory(self.lookup(path)?) {
            return Err(Reason::IsADirectory);
        }
        self.unlink(path)
    }

    pub(super) fn remove_directory(&mut self, path: &Path) -> Result<(), Reason> {
        path::split(path)?;
        if !self.directory(self.lookup(path)?)?.now().is_empty() {
            return Err(Reason::NotEmpty);
        }
        self.unlink(path)
    }

    fn unlink(&mut self, path: &Path) -> Result<(), Reason> {
        let inode = self.lookup(path)?;
        let (above, name) = self.above(path)?;
        self.directory_mut(above).remove(name);
        self.node(inode).names -= 1;
        Ok(())
    }

    pub(super) fn create_directory(&mut self, path: &Path) -> Result<(), Reason> {
        let mut inode = ROOT;
        for name in path::names(path)? {
            inode = match self.directory(inode)?.get(name) {
                Some(there) => there,
                None => self.add(inode, name, Kind::Directory(Names::default())),
            };
        }
        self.directory(inode).map(drop)
    }

    pub(super) fn list(&self, path: &Path) -> Result<Vec<Entry>, Reason> {
        let names = self.directory(self.lookup(path)?)?.now();
        let entries = names.iter().map(|(name, inode)| Entry {
            name: name.clone(),
            kind: match &self.nodes[inode].kind {
                Kind::File(content) => EntryKind::File(content.len()),
                Kind::Directory(_) => EntryKind::Directory,
            },
        });
        Ok(entries.collect())
    }

    pub(super) fn flush_directory(&mut self, path: &Path, goes_well: bool) -> Result<(), Reason> {
        let inode = self.lookup(path)?;
        self.directory(inode)?;
        let mut random = self.random.clone();
        let names = self.directory_mut(inode);
        if goes_well {
            names.flush()
        } else {
            names.fail_flush(&mut random)
        }
        self.random = random;
        self.forget();
        Ok(())
    }

    /// Forgets what has no name, is not open, and cannot come back.
    fn forget(&mut self) {
        let mut reached = BTreeSet::from([ROOT]);
        let open = self.nodes.iter().filter(|(_, node)| node.handles > 0);
        let mut left: Vec<Inode> = open.map(|(inode, _)| *inode).chain([ROOT]).collect();
        reached.extend(&left);
        while let Some(inode) = left.pop() {
            if let Kind::Directory(names) = &self.nodes[&inode].kind {
                left.extend(names.inodes().filter(|inode| reached.insert(*inode)));
            }
        }
        self.nodes.retain(|inode, _| reached.contains(inode));
    }

    // ---- files ----

    pub(super) fn content(&mut self, inode: Inode) -> &mut Content {
        match &mut self.node(inode).kind {
            Kind::File(content) => content,
            Kind::Directory(_) => panic!("inode {inode} is a directory"),
        }
    }

    pub(super) fn flush(&mut self, inode: Inode, goes_well: bool) {
        let mut random = self.random.clone();
        let content = self.content(inode);
        if goes_well {
            content.flush()
        } else {
            content.fail_flush(&mut random)
        }
        self.random = random;
    }

    pub(super) fn opened(&mut self, inode: Inode) {
        self.node(inode).handles += 1;
    }

    pub(super) fn closed(&mut self, inode: Inode) {
        self.node(inode).handles -= 1;
    }

    /// The bytes that are free, if the disk has an end.
    pub(super) fn free(&self) -> Option<u64> {
        let used = self.nodes.values().map(|node| match &node.kind {
            Kind::File(content) if node.names + node.handles > 0 => content.room(),
            _ => 0,
        });
        // What comes back after a crash may be more than there was room for: its room was given to others at once.
        self.capacity
            .map(|capacity| capacity.saturating_sub(used.sum()))
    }

    // ---- locks ----

    /// Locks a file, or says who has locked it.
    pub(super) fn lock(&mut self, inode: Inode, lock: Lock, pid: u32) -> Result<(), Reason> {
        let locks = self.locks.entry(inode).or_default();
        match lock {
            _ if locks.writer.is_some() => Err(Reason::Locked(Holder::Writer(locks.writer))),
            Lock::Exclusive if locks.readers > 0 => Err(Reason::Locked(Holder::Readers(None))),
            Lock::Exclusive => {
                locks.writer = Some(pid);
                Ok(())
            }
            Lock::Shared => {
                locks.readers += 1;
                Ok(())
            }
        }
    }

    pub(super) fn unlock(&mut self, inode: Inode, lock: Lock) {
        let locks = self.locks.entry(inode).or_default();
        match lock {
            Lock::Exclusive => locks.writer = None,
            Lock::Shared => locks.readers -= 1,
        }
    }

    // ---- what is found afterwards ----

    /// The disk as it is found after a loss of power.
    pub(super) fn after_crash(&mut self) -> State {
        let mut random = Random::new(self.random.next());
        let kept = Kept::any(&mut random);
        let mut nodes: BTreeMap<Inode, Node> = BTreeMap::new();
        let mut left = vec![ROOT];
        while let Some(inode) = left.pop() {
            if let Some(node) = nodes.get_mut(&inode) {
                node.names += 1;
                continue;
            }
            let kind = match &self.nodes[&inode].kind {
                Kind::File(content) => Kind::File(content.after_crash(kept, &mut random)),
                Kind::Directory(names) => {
                    let names: Map = names.after_crash(kept, &mut random);
                    left.extend(names.values());
                    Kind::Directory(Names::durable(names))
                }
            };
            nodes.insert(
                inode,
                Node {
                    names: 1,
                    ..Node::new(kind)
                },
            );
        }
        State {
            nodes,
            ..self.afterwards(random)
        }
    }

    /// The disk as it is found after the process was killed: the system still has what was written.
    pub(super) fn after_kill(&mut self) -> State {
        let random = Random::new(self.random.next());
        let mut found = self.afterwards(random);
        found.nodes.values_mut().for_each(|node| node.handles = 0);
        found
    }

    /// The same disk, without anything that belongs to a process.
    fn afterwards(&self, random: Random) -> State {
        State {
            random,
            counts: Counts::default(),
            plan: Plan::default(),
            stopped: false,
            longest_read: 0,
            locks: BTreeMap::new(),
            ..self.clone()
        }
    }
}

impl Node {
    fn new(kind: Kind) -> Self {
        Node {
            names: 0,
            handles: 0,
            kind,
        }
    }
}
