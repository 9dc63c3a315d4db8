// Where a position lies, as numbers that are added to its features: attention itself knows no order.
#pragma once

#include "nonlocal/attention.h"
#include "nonlocal/export.h"
#include "nonlocal/matrix.h"

namespace nonlocal {

// Writes the sinusoidal encoding of every position of the grid, a row each, in the grid's order:
//
//   table(p, 2i) = sin(p / 10000^(2i/d))    table(p, 2i + 1) = cos(p / 10000^(2i/d))
//
// (A. Vaswani et al.: Attention is all you need, NIPS 2017), p from 0 on: with d = 4 that of 1 is [sin 1, cos
// 1, sin 0.01, cos 0.01]. With 2 or 3 axes the channels are split evenly, d = channels / axes for each: the
// first d encode the column x, the next d the row y, the last the frame t. With 1 axis p is the position's
// number.
//
// Throws InvalidArgument unless axes is 1 to 3, d whole and even, and the table has a row for each position.
NONLOCAL_API void sinusoidal_encoding(const AttentionGrid& grid, int axes, const Matrix& table);

// features += table: that one, or a learned one. Throws InvalidArgument, naming the matrix, unless both have
// one shape.
NONLOCAL_API void add_encoding(const ConstMatrix& table, const Matrix& features);

}  // namespace nonlocal
