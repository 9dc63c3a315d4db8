// What the CPU has beyond the instruction sets that Highway knows.
#pragma once

namespace nonlocal {

// Rows of a tile, and numbers of 32 bits in each: sums, or cells of two bfloat16.
inline constexpr int kTile = 16;

// Whether products of bfloat16 are made in tiles of 16 x 16 sums (Intel's AMX): the CPU has them, the system
// lends them to this process, and the instruction set in use is one with them. oneDNN finds that out, so that
// its ONEDNN_MAX_CPU_ISA limits both.
bool has_tiles();

// Whether bfloat16 is the faster precision where it is supported. Intel's CPUs without tiles add half as many
// products of bfloat16 in a cycle as of float32 (vdpbf16ps every other cycle, two additions of products in
// each).
bool is_bfloat16_faster();

}  // namespace nonlocal
