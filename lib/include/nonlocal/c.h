// The denoiser of a video's frames (video_denoiser.h) for C, and for languages that call C.
//
//   nonlocal_denoiser* denoiser = nonlocal_denoiser_new();
//   nonlocal_plane planes[3] = {{y, 1920, 1080, 1920, 8, 1, 0}, {u, ...}, {v, ...}};
//   if (!denoiser || nonlocal_denoiser_filter(denoiser, planes, 3, NULL) != 0)
//     fprintf(stderr, "%s\n", nonlocal_last_error());
//   nonlocal_denoiser_free(denoiser);
//
// Functions that can fail return NULL or -1 then; nonlocal_last_error() says why. A denoiser that they are
// given is one that nonlocal_denoiser_new() returned, never NULL but where it says so.
#pragma once

#include <stddef.h>

#include "nonlocal/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// Samples in the caller's memory, as plane.h has them.
typedef struct nonlocal_plane {
  void* data;
  int width;
  int height;
  ptrdiff_t stride;  // bytes from a row to the next
  int bit_depth;     // 8; 9 to 16: two bytes a sample, of the machine's order
  int step;          // samples from a value to its right-hand neighbour: 1 planar, 2 for NV12's UV
  int shift;         // unused low bits: 6 for P010
} nonlocal_plane;

typedef struct nonlocal_settings {
  double sigma;     // standard deviation of the noise in 8-bit code values, 0 to 100; below 0: estimated
  double strength;  // on luma, 0 (leaves it) to 10
  double chroma_strength;  // on the chroma planes, 0 to 10
  int patch_size;          // odd, 1 to 15
  int search_size;         // odd, 3 to 63
  int temporal;            // not 0: fuses each frame with those before it
  int threads;             // 0: as many as the machine has; the output does not depend on it
} nonlocal_settings;

// Those of the element's preset balanced: -1, 1, 1, 5, 11, 1, 0.
NONLOCAL_API nonlocal_settings nonlocal_default_settings(void);

// Filters the frames of one video, one after another, in the order shown. One object serves one thread at a
// time; different objects are independent.
typedef struct nonlocal_denoiser nonlocal_denoiser;

NONLOCAL_API nonlocal_denoiser* nonlocal_denoiser_new(void);

// NULL is allowed.
NONLOCAL_API void nonlocal_denoiser_free(nonlocal_denoiser* denoiser);

// From now on this network refines luma: one of the library's ("refine_balanced", "refine_quality"), a file's
// path with a '/' in it, or none (NULL), as it is to begin with. Returns 0, or -1.
NONLOCAL_API int nonlocal_denoiser_refine_with(nonlocal_denoiser* denoiser, const char* model);

// Filters a frame in place: 1 plane (gray, or luma alone), or 3, luma and its chroma planes, which have its
// size or half of it, rounded either way, and its depth. `settings` NULL: the defaults. Returns 0, or -1
// where planes or settings do not fit: the frame is then as it was.
NONLOCAL_API int nonlocal_denoiser_filter(nonlocal_denoiser* denoiser, const nonlocal_plane* planes,
                                          int count, const nonlocal_settings* settings);

// The noise that the last frame was filtered for: of its luma, over the frame, in 8-bit code values.
NONLOCAL_API double nonlocal_denoiser_noise(const nonlocal_denoiser* denoiser);

// The next frame has nothing to do with those before: after a seek, for example.
NONLOCAL_API void nonlocal_denoiser_reset(nonlocal_denoiser* denoiser);

// What was expected and what came, of this thread's last call that failed; "" before any. It stays until the
// next one fails.
NONLOCAL_API const char* nonlocal_last_error(void);

#ifdef __cplusplus
}
#endif
