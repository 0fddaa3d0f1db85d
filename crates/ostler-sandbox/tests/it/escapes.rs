use ostler_sandbox::Layers;

use crate::stage::Stage;

#[test]
fn smoke() {
    let stage = Stage::new();
    let script = "id; pwd; ls -la . ..; touch new; touch /etc/x; cat /proc/sys/kernel/core_pattern; echo x > .mcp.json; mkdir -p .git/hooks; ls -la /root /home /tmp /run; grep -i 'seccomp\\|cap\\|nonew' /proc/self/status; ls /proc | head -30; python3 -c 'import socket; socket.socket(socket.AF_UNIX)'; time true";
    let output = stage.run(Layers::ALL, script);
    println!(
        "{}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        output.status
    );
    let left: Vec<_> =
        std::fs::read_dir(stage.path("work")).unwrap().map(|e| e.unwrap().path()).collect();
    println!("{left:?}");
}
