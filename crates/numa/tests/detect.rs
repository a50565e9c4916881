//! Detecting this machine, with the environment variable and with an affinity mask.

#![cfg(not(miri))]

use eris_numa::{TOPOLOGY_VARIABLE, Topology, pin_current_thread};
use std::process::Command;

/// Prints what is detected; as a test of its own it says only that this works at all. The others run it in a process of
/// its own, for an environment cannot be changed under running threads.
#[test]
fn detected() {
    match Topology::detect() {
        Ok(topology) => println!("detected {}", serde_json::to_string(&topology).unwrap()),
        Err(error) => println!("detected error {error}"),
    }
}

fn detect_with(value: &str) -> String {
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "detected", "--nocapture"])
        .env(TOPOLOGY_VARIABLE, value)
        .output()
        .unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    let found = text.lines().find_map(|line| line.split_once("detected "));
    found.expect("a line of the child's").1.to_string()
}

#[test]
fn the_variable_makes_a_topology() {
    let made: serde_json::Value = serde_json::from_str(&detect_with("64x2")).unwrap();
    assert_eq!(made["fake"], true);
    assert_eq!(made["nodes"].as_array().unwrap().len(), 64);
    assert_eq!(made["aeus"].as_array().unwrap().len(), 128);
    assert_eq!(made["aeus"][3]["node"], 1);
    // Hardly a machine has that many CPUs for one process.
    assert_eq!(made["aeus"][3]["cpu"], serde_json::Value::Null);
    let one: serde_json::Value = serde_json::from_str(&detect_with("1x1")).unwrap();
    assert!(
        one["aeus"][0]["cpu"].is_number(),
        "one AEU is always bound: {one}"
    );
    let real: serde_json::Value = serde_json::from_str(&detect_with("")).unwrap();
    assert_eq!(real["fake"], false);
}

#[test]
fn a_wrong_variable_is_an_error_that_names_it() {
    let error = detect_with("4by2");
    assert!(
        error.starts_with("error ERIS_TOPOLOGY=\"4by2\" is no topology: expected NODESxCORES"),
        "{error}"
    );
}

#[test]
fn cpus_outside_of_the_affinity_mask_are_left_out() {
    let every = Topology::from_sysfs("/".as_ref()).unwrap();
    for place in every.aeus() {
        let cpu = place.cpu.unwrap();
        let thread = std::thread::spawn(move || {
            pin_current_thread(cpu).map(|()| Topology::detect().unwrap())
        });
        // A cpuset may withhold the CPU from this process.
        let Ok(topology) = thread.join().unwrap() else {
            continue;
        };
        if topology.is_fake() {
            return; // Started with the variable set.
        }
        let cpus: Vec<_> = topology.aeus().iter().map(|place| place.cpu).collect();
        assert_eq!(cpus, [Some(cpu)]);
        assert_eq!(
            topology.nodes()[0].os_node,
            every.nodes()[place.node.index()].os_node
        );
    }
}
