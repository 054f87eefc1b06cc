"""Plays `dfu-util` 0.11: prints what the real one prints, ends as it ends, and moves the simulated boards of a folder.

dfu_util_double.py FOLDER WORD…
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

EX_IOERR = 74
FOLDER, WORDS = Path(sys.argv[1]), sys.argv[2:]


def happens(name):
    """Whether a fault happens now: its file counts how often it does."""
    file = FOLDER / f"fault-{name}"
    if not file.exists():
        return False
    left = int(file.read_text()) - 1
    if left > 0:
        file.write_text(str(left))
    else:
        file.unlink()
    return True


def fail(text):
    sys.stdout.flush()
    print(f"dfu-util: {text}", file=sys.stderr)
    sys.exit(EX_IOERR)


def value(name):
    return WORDS[WORDS.index(name) + 1] if name in WORDS else None


def openable(devices):
    """Those that this user may open; the real one warns of the others."""
    found = []
    for device in devices:
        if device.get("denied") or (device["devnum"] == BUS["mine"] and happens("denied")):
            ids = f"{device['vid']:04x}:{device['pid']:04x}"
            print(
                f"dfu-util: Cannot open DFU device {ids} found on devnum {device['devnum']} (LIBUSB_ERROR_ACCESS)",
                file=sys.stderr,
            )
        else:
            found.append(device)
    return found


def list_devices():
    for device in openable(BUS["devices"]):
        for number, name in reversed(list(enumerate(device["alternates"]))):
            print(
                f"Found {device['mode']}: [{device['vid']:04x}:{device['pid']:04x}] ver=0200, "
                f'devnum={device["devnum"]}, cfg=1, intf=0, path="{device["path"]}", alt={number}, '
                f'name="{name}", serial="{device["serial"]}"'
            )


def chosen():
    runtime, _, ids = value("--device").partition(",")
    assert runtime == "", "a device in run-time mode would match as well"
    vid, pid = (int(word, 16) for word in ids.split(":"))
    path = value("--path")
    found = [device for device in BUS["devices"] if (device["vid"], device["pid"]) == (vid, pid)]
    found = openable([device for device in found if path in (None, device["path"])])
    if not found:
        fail("No DFU capable USB device available")
    if len(found) > 1:
        fail(
            "More than one DFU capable USB device found! Try `--list' and specify the serial number "
            "or disconnect all but one device"
        )
    return found[0]


def send(size, whole):
    """Bytes to the board; back when it has them."""
    part = FOLDER / "download.part"
    part.write_text(json.dumps({"words": WORDS, "file": value("--download"), "size": size, "whole": whole}))
    part.replace(FOLDER / "download")
    while (FOLDER / "download").exists():
        time.sleep(0.01)


def download():
    device = chosen()
    whole = Path(value("--download")).stat().st_size
    print("dfu-util: Warning: Invalid DFU suffix signature", file=sys.stderr)
    print("Opening DFU capable USB device...")
    print(f"Device ID {device['vid']:04x}:{device['pid']:04x}")
    print(f"Setting Alternate Interface #{value('--alt')} ...")
    if int(value("--alt")) >= len(device["alternates"]):
        fail("Cannot set alternate interface: LIBUSB_ERROR_NOT_FOUND")
    print("DFU state(2) = dfuIDLE, status(0) = No error condition is present")
    in_the_middle = [name for name in ("broken", "crash", "stall", "cut") if happens(name)]
    if in_the_middle:
        send(whole // 3, whole)
        print(f"\rDownload\t[========                 ]  33% {whole // 3:12} bytes")
        if "crash" in in_the_middle:
            os.kill(os.getpid(), signal.SIGSEGV)
        if "stall" in in_the_middle:
            time.sleep(3600)
        fail("Error during download get_status (LIBUSB_ERROR_PIPE)")
    send(whole, whole)
    print(f"\rDownload\t[=========================] 100% {whole:12} bytes\nDownload done.")
    leaves = value("--dfuse-address")
    print("File downloaded successfully\nSubmitting leave request..." if leaves else "Done!", flush=True)
    if happens("late-crash"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if not leaves:
        print("Resetting USB to switch back to Run-Time mode")
    if happens("goodbye"):
        fail(
            "Error during download get_status (LIBUSB_ERROR_NO_DEVICE)"
            if leaves
            else "error resetting after download: LIBUSB_ERROR_NO_DEVICE"
        )


BUS = json.loads((FOLDER / "bus.json").read_text())
print(f"dfu-util {BUS['version']}\n\nCopyright 2005-2009 Weston Schmidt, Harald Welte and OpenMoko Inc.\n")
if "--list" in WORDS:
    if happens("no-bus"):
        fail("unable to initialize libusb: LIBUSB_ERROR_OTHER")
    list_devices()
elif "--version" not in WORDS:
    download()
