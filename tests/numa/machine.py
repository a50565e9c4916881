"""A small Linux machine with several NUMA nodes, emulated by QEMU: boots in seconds, runs a shell script, ends.

    kernel    ERIS_NUMA_VM_KERNEL, or one below /boot, or the Debian package's, downloaded and unpacked, never installed
    initramfs busybox, the script, programs with the libraries that they load
    nodes     memory and two processors each; neighbours in pairs are nearer to each other than to the others

What is emulated has no speed and no distance, so that only *where* memory lies can be looked at, not what that is worth.
The kernel's own balancing of NUMA pages is switched off: it would move pages behind the program's back.

Needs x86-64 Linux, `qemu-system-x86_64` and a static `busybox`; else nothing but Python's standard library.
"""

import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

CACHE = Path(os.environ.get("ERIS_CACHE") or Path.home() / ".cache/eris") / "numa-vm"
PACKAGES = "qemu-system-x86 busybox-static"
# A package without a kernel in it, which depends on the newest one of its kind: made for virtual machines, a third of
# the size.
KERNEL_PACKAGE = "linux-image-cloud-amd64"
PROCESSORS = 2
ENDED = re.compile(r"^machine-ended:(\d+)$", re.MULTILINE)

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/programs:/bin HOME=/tmp
mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev
mkdir -p /dev/shm; mount -t tmpfs none /dev/shm
echo 0 > /proc/sys/kernel/numa_balancing
# Whichever processor unpacked the archive, its node had the memory: the programs, which are large, go to the first one.
mkdir /programs; mount -t tmpfs -o mpol=bind:0 none /programs
mv /packed/* /programs
sh /script < /dev/null > /dev/ttyS1 2>&1
echo "machine-ended:$?" > /dev/ttyS2
sync
poweroff -f
"""


class Missing(Exception):
    """Something that the machine needs is not there; says what, and how to get it."""


class Broken(Exception):
    """The machine did not come to the script's end."""


def run(script, programs, megabytes, seconds):
    """Runs a shell script on a new machine; returns its status and what it printed.

    `programs` maps the names of commands to files, `megabytes` has the memory of each node.
    Raises Missing if something that it takes is not there, and Broken if the machine did not end by itself within so many seconds.
    """
    qemu, busybox = needed()
    kernel = find_kernel()
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        initramfs = directory / "initramfs"
        pack(initramfs, busybox, script, programs)
        output, status, console = (directory / name for name in ("output", "status", "console"))
        command = [qemu, *arguments(megabytes), "-kernel", kernel, "-initrd", initramfs]
        for serial in (console, output, status):
            command += ["-serial", f"file:{serial}"]
        try:
            subprocess.run(command, check=True, timeout=seconds)
            reason = "it ended before the script did"
        except subprocess.TimeoutExpired:
            reason = f"it was stopped after {seconds} s"
        except subprocess.CalledProcessError as error:
            reason = f"QEMU failed with status {error.returncode}"
        printed = text(output)
        ended = ENDED.search(text(status))
        if ended is None:
            tail = "\n".join(text(console).splitlines()[-40:])
            raise Broken(f"{printed}\nThe machine has failed: {reason}. Its console:\n{tail}")
        return int(ended[1]), printed


def check():
    """Raises Missing if no machine could run; downloads what it takes."""
    needed()
    find_kernel()


def text(path):
    return path.read_bytes().decode(errors="replace").replace("\r", "") if path.exists() else ""


def needed():
    """QEMU and busybox."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise Missing(f"it takes x86-64 Linux, and this is {platform.machine()} {platform.system()}")
    qemu, busybox = (shutil.which(name) for name in ("qemu-system-x86_64", "busybox"))
    if not qemu or not busybox or libraries(busybox):
        raise Missing(f"QEMU or a static busybox is missing: apt-get install {PACKAGES}")
    return qemu, busybox


def find_kernel():
    """A kernel image."""
    named = os.environ.get("ERIS_NUMA_VM_KERNEL")
    if named:
        if not os.access(named, os.R_OK):
            raise Missing(f"ERIS_NUMA_VM_KERNEL={named} cannot be read")
        return Path(named)
    here = newest(CACHE.glob("boot/vmlinuz-*")) or newest(Path("/boot").glob("vmlinuz-*"))
    return here or download()


def newest(images):
    return max((image for image in images if os.access(image, os.R_OK)), key=lambda image: image.stat().st_mtime, default=None)


def download():
    """Downloads and unpacks a kernel package into the cache; returns the image."""
    hint = "name a kernel image by ERIS_NUMA_VM_KERNEL=/boot/vmlinuz-… or, on Debian, make `apt-get update` work"
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        listed = subprocess.run(["apt-cache", "depends", KERNEL_PACKAGE], check=True, capture_output=True, text=True).stdout
        package = re.search(r"Depends: (linux-image-\d\S*)", listed)[1]
        with tempfile.TemporaryDirectory(dir=CACHE) as directory:
            subprocess.run(["apt-get", "download", package], cwd=directory, check=True, capture_output=True)
            (archive,) = Path(directory).glob("*.deb")
            subprocess.run(["dpkg", "-x", archive, Path(directory) / "files"], check=True, capture_output=True)
            (image,) = (Path(directory) / "files/boot").glob("vmlinuz-*")
            (CACHE / "boot").mkdir(exist_ok=True)
            return Path(shutil.move(image, CACHE / "boot"))
    except (OSError, subprocess.CalledProcessError, TypeError, ValueError) as error:
        raise Missing(f"there is no kernel for the machine ({error}): {hint}") from error


def libraries(program):
    """The shared libraries that a program loads; none of a static one."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", listed)


def pack(initramfs, busybox, script, programs):
    """Writes an archive that the kernel unpacks into its first file system (cpio, `newc`)."""
    files = {"/init": INIT.encode(), "/script": script.encode(), "/bin/busybox": Path(busybox).read_bytes()}
    for name, program in programs.items():
        for library in libraries(program):
            files[library] = Path(library).read_bytes()
        files[f"/packed/{name}"] = stripped(program)
    folders = {"/dev", "/proc", "/sys", "/tmp", "/root"} | {str(folder) for path in files for folder in Path(path).parents}
    entries = [(folder, 0o040755, b"") for folder in sorted(folders - {"/"})]
    entries += [(path, 0o100755, content) for path, content in files.items()]
    with initramfs.open("wb") as archive:
        for number, (path, mode, content) in enumerate([*entries, ("/TRAILER!!!", 0, b"")], 1):
            name = path[1:].encode() + b"\0"
            fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0]
            archive.write(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
            archive.write(b"\0" * (-archive.tell() % 4) + content)
            archive.write(b"\0" * (-archive.tell() % 4))


def stripped(program):
    """A program without what only debuggers read, which would take the machine's memory."""
    with tempfile.NamedTemporaryFile() as copy:
        done = subprocess.run(["strip", "-o", copy.name, program], check=False, capture_output=True)
        return Path(copy.name if done.returncode == 0 else program).read_bytes()


def arguments(megabytes):
    """QEMU's arguments for nodes with so much memory each."""
    nodes = range(len(megabytes))
    processors = PROCESSORS * len(megabytes)
    result = "-machine pc -nodefaults -no-user-config -display none -no-reboot -cpu max".split()
    result += ["-accel", "tcg,thread=multi,tb-size=256", "-m", f"{sum(megabytes)}M"]
    result += ["-smp", f"{processors},sockets={len(megabytes)},cores={PROCESSORS},threads=1"]
    for node in nodes:
        result += ["-object", f"memory-backend-ram,id=memory{node},size={megabytes[node]}M"]
        first = PROCESSORS * node
        result += ["-numa", f"node,nodeid={node},memdev=memory{node},cpus={first}-{first + PROCESSORS - 1}"]
    for node in nodes:
        for other in nodes:
            distance = 10 if node == other else 16 if node // 2 == other // 2 else 22
            result += ["-numa", f"dist,src={node},dst={other},val={distance}"]
    boot = "console=ttyS0 quiet panic=-1 tsc=reliable nokaslr mitigations=off random.trust_cpu=on rdinit=/init"
    return [*result, "-append", boot]
