#include "frame.h"

#include "port.h"

namespace frame {

uint32_t crc32(uint32_t crc, const uint8_t* data, size_t size) {
    // Four bits at a time: 64 bytes of table instead of 1024.
    static const uint32_t table[16] = {
        0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
        0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
    };
    crc = ~crc;
    for (size_t i = 0; i < size; ++i) {
        crc ^= data[i];
        crc = table[crc & 15] ^ (crc >> 4);
        crc = table[crc & 15] ^ (crc >> 4);
    }
    return ~crc;
}

size_t decode(uint8_t* data, size_t size) {
    size_t from = 0;
    size_t to = 0;
    while (from < size) {
        const uint8_t length = data[from++];
        if (length == 0 || from + length - 1 > size) {
            return 0;
        }
        for (uint8_t i = 1; i < length; ++i) {
            data[to++] = data[from++];
        }
        if (length < 255 && from < size) {
            data[to++] = 0;
        }
    }
    return to;
}

Writer::Writer() : crc_(0), size_(0) {
    const uint8_t delimiter = 0;
    port::write(&delimiter, 1);
}

void Writer::put(uint8_t byte) {
    crc_ = crc32(crc_, &byte, 1);
    encode(byte);
}

void Writer::put(const void* data, size_t size) {
    const uint8_t* bytes = static_cast<const uint8_t*>(data);
    crc_ = crc32(crc_, bytes, size);
    for (size_t i = 0; i < size; ++i) {
        encode(bytes[i]);
    }
}

void Writer::put_u16(uint16_t value) {
    put(static_cast<uint8_t>(value));
    put(static_cast<uint8_t>(value >> 8));
}

void Writer::put_u32(uint32_t value) {
    put_u16(static_cast<uint16_t>(value));
    put_u16(static_cast<uint16_t>(value >> 16));
}

void Writer::put_u64(uint64_t value) {
    put_u32(static_cast<uint32_t>(value));
    put_u32(static_cast<uint32_t>(value >> 32));
}

void Writer::finish() {
    const uint32_t crc = crc_;
    for (int shift = 0; shift < 32; shift += 8) {
        encode(static_cast<uint8_t>(crc >> shift));
    }
    flush();
    const uint8_t delimiter = 0;
    port::write(&delimiter, 1);
}

void Writer::encode(uint8_t byte) {
    if (byte == 0) {
        flush();
        return;
    }
    block_[++size_] = byte;
    if (size_ == 254) {
        flush();
    }
}

void Writer::flush() {
    // A full block has no zero byte behind it, every shorter one has; the reader drops that of the last
    // block.
    block_[0] = static_cast<uint8_t>(size_ + 1);
    port::write(block_, size_ + 1u);
    size_ = 0;
}

}  // namespace frame
