"""A virtual Raspberry Pi Pico 2: runs the very UF2 that goes to a real board, on an emulated RP2350."""

from toolkit.emulation.rp2350.desk import Port
from toolkit.emulation.rp2350.misbehaviour import (
    BytesLost,
    Fault,
    PortGone,
    PortRenamed,
    RebootAt,
    Silent,
    TornWrite,
    VolumeFull,
)
from toolkit.emulation.rp2350.misbehaviour import parse as parse_fault
from toolkit.emulation.rp2350.process import Status, VirtualPico2, start

__all__ = [
    "BytesLost",
    "Fault",
    "Port",
    "PortGone",
    "PortRenamed",
    "RebootAt",
    "Silent",
    "Status",
    "TornWrite",
    "VirtualPico2",
    "VolumeFull",
    "parse_fault",
    "start",
]
