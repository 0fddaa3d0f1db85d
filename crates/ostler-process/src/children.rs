//! The direct children of this process, read from `/proc` without looking at any other process.

use std::collections::BTreeSet;
use std::fs;

/// The children of all threads of this process, zombies included. `None` if they cannot be known for certain: without
/// `/proc`, on a kernel that does not list them, or while threads come and go.
///
/// The kernel may skip a child while another one ends, so the list counts only if it is the same twice.
pub(crate) fn own() -> Option<BTreeSet<i32>> {
    let before = threads()?;
    let first = read(&before)?;
    // The children of a thread that ends move to another one, perhaps one that was read before.
    let is_certain = read(&before)? == first && threads()? == before;
    is_certain.then_some(first)
}

fn read(threads: &BTreeSet<i32>) -> Option<BTreeSet<i32>> {
    let mut children = BTreeSet::new();
    for thread in threads {
        let list = fs::read_to_string(format!("/proc/self/task/{thread}/children")).ok()?;
        for id in list.split_ascii_whitespace() {
            children.insert(id.parse().ok()?);
        }
    }
    Some(children)
}

fn threads() -> Option<BTreeSet<i32>> {
    let folders = fs::read_dir("/proc/self/task").ok()?;
    folders.map(|folder| folder.ok()?.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::own;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_of_any_thread_is_listed_until_it_has_been_waited_for() {
        let start = || std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let mut children = [start(), std::thread::spawn(start).join().unwrap()];
        let ids = children.each_ref().map(|child| child.id().cast_signed());
        // Other tests of this program start threads and children at the same time.
        let known = || (0..1000).find_map(|_| own()).expect("the children are known at some time");
        assert!(ids.iter().all(|id| known().contains(id)));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(ids.iter().all(|id| !known().contains(id)));
    }
}
