// Frames on a serial line: COBS between zero bytes, closed by a CRC-32.
//
// Whatever stands between two zero bytes and is not a frame with a right CRC is plain text (the log) or
// noise; a reader drops it and is in step again at the next zero byte.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace frame {

// CRC-32 as in IEEE 802.3 (polynomial 0xEDB88320, reflected, initial value and final XOR all ones).
// `crc` is the value so far, 0 to begin with.
uint32_t crc32(uint32_t crc, const uint8_t* data, size_t size);

// Decodes `size` bytes of COBS in place. Returns the decoded size, 0 when the bytes are not COBS.
size_t decode(uint8_t* data, size_t size);

// Writes one frame to the serial line, a block of at most 254 bytes at a time.
class Writer {
  public:
    Writer();
    void put(uint8_t byte);
    void put(const void* data, size_t size);
    void put_u16(uint16_t value);
    void put_u32(uint32_t value);
    void put_u64(uint64_t value);
    // Appends the CRC and closes the frame.
    void finish();

  private:
    void encode(uint8_t byte);
    void flush();

    uint32_t crc_;
    uint8_t size_;        // bytes in block_, without its length byte
    uint8_t block_[255];  // length byte, then up to 254 bytes that are not zero
};

}  // namespace frame
