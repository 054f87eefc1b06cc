// Answers the host's requests on the serial line: describe the model, take inputs, run, give results.
//
// Request:  command, sequence number, payload, CRC-32
// Response: command | 0x80, the same sequence number, status, payload, CRC-32
// Integers are little-endian. A request whose CRC is wrong is not answered; the host asks again with the same
// sequence number. Every command may be repeated: running is the only one that is not done twice.
#pragma once

#include <stdint.h>

namespace server {

const uint8_t kProtocolVersion = 1;
const uint16_t kMaxPayload = 1024;

enum Command : uint8_t {
    kHello =
        1,  // -> version u8, max payload u16, ticks/s u32, arena u32, stack u32, inputs u8, outputs u8,
            //    layers u16, SHA-256 of the program (32 bytes), model, board, kernels (length u8 and text)
    kDescribe = 2,   // direction u8 (0 input, 1 output), index u8 -> dtype u8, rank u8, dims u32 each
    kWrite = 3,      // input u8, offset u32, bytes ->
    kInvoke = 4,     // count u32 -> ticks u64
    kRead = 5,       // output u8, offset u32, size u16 -> bytes
    kStep = 6,       // layer u16 -> ticks u64 (runs this layer alone)
    kReadLayer = 7,  // layer u16, offset u32, size u16 -> bytes of the layer's result
    kStack = 8,      // -> deepest use so far u32
};

enum Status : uint8_t {
    kOk = 0,
    kUnknownCommand = 1,
    kBadRequest = 2,       // payload too short, or an index or a range that the model does not have
    kInferenceFailed = 3,  // payload: layer u16, status of its kernel i32
    kNotGreeted = 4,       // no kHello since the board started: what the host wrote before is gone
};

// Never returns.
void serve();

// Answers what has arrived, for a program that also does other things; whether that was any request.
bool poll();

// What the host wrote is not there any more: it must say hello again.
void forget();

}  // namespace server
