/* The library from C: a frame gets nearer to the clean one, a network can be added, and what does not fit is
 * refused with a message and leaves the frame as it was. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nonlocal/c.h"

enum { kWidth = 160, kHeight = 120, kHalfWidth = kWidth / 2, kHalfHeight = kHeight / 2, kSigma = 15 };

struct frame {
  unsigned char y[kWidth * kHeight];
  unsigned char u[kHalfWidth * kHalfHeight];
  unsigned char v[kHalfWidth * kHalfHeight];
};

static int failures = 0;

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "expected %s; last error: '%s'\n", what, nonlocal_last_error());
  ++failures;
}

/* About Gaussian: the sum of twelve uniform numbers. */
static double noise(void) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += rand() / (RAND_MAX + 1.0);
  return sum;
}

static unsigned char code(double value) { return (unsigned char)fmin(fmax(value + 0.5, 0), 255); }

static void draw(unsigned char* samples, int width, int height, double sigma) {
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const double clean = (x / 20 + y / 15) % 2 ? 80 + x / 4 : 150;
      samples[y * width + x] = code(clean + sigma * noise());
    }
}

static void draw_frame(struct frame* frame, double sigma) {
  draw(frame->y, kWidth, kHeight, sigma);
  draw(frame->u, kHalfWidth, kHalfHeight, sigma);
  draw(frame->v, kHalfWidth, kHalfHeight, sigma);
}

static double psnr(const unsigned char* a, const unsigned char* b, int count) {
  double squares = 1e-9;
  for (int i = 0; i < count; ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return 10 * log10(255.0 * 255.0 * count / squares);
}

static void planes_of(struct frame* frame, nonlocal_plane planes[3]) {
  const nonlocal_plane all[3] = {{frame->y, kWidth, kHeight, kWidth, 8, 1, 0},
                                 {frame->u, kHalfWidth, kHalfHeight, kHalfWidth, 8, 1, 0},
                                 {frame->v, kHalfWidth, kHalfHeight, kHalfWidth, 8, 1, 0}};
  memcpy(planes, all, sizeof all);
}

static void frames_get_better(const char* network) {
  static struct frame clean, noisy, frame;
  nonlocal_plane planes[3];
  nonlocal_denoiser* denoiser = nonlocal_denoiser_new();
  expect(denoiser != NULL, "a denoiser");
  expect(nonlocal_denoiser_refine_with(denoiser, network) == 0, "a network");
  draw_frame(&clean, 0);
  for (int i = 0; i < 3; ++i) {
    draw_frame(&noisy, kSigma);
    frame = noisy;
    planes_of(&frame, planes);
    expect(nonlocal_denoiser_filter(denoiser, planes, 3, NULL) == 0, "a frame filtered");
    expect(fabs(nonlocal_denoiser_noise(denoiser) - kSigma) < 0.2 * kSigma, "noise found within a fifth");
    expect(psnr(frame.y, clean.y, sizeof clean.y) > psnr(noisy.y, clean.y, sizeof clean.y) + 5,
           "better luma");
    expect(psnr(frame.u, clean.u, sizeof clean.u) > psnr(noisy.u, clean.u, sizeof clean.u) + 3, "better Cb");
    expect(psnr(frame.v, clean.v, sizeof clean.v) > psnr(noisy.v, clean.v, sizeof clean.v) + 3, "better Cr");
  }
  nonlocal_denoiser_reset(denoiser);
  nonlocal_denoiser_free(denoiser);
}

static void settings_count(void) {
  static struct frame noisy, frame;
  nonlocal_plane planes[3];
  nonlocal_denoiser* denoiser = nonlocal_denoiser_new();
  nonlocal_settings settings = nonlocal_default_settings();
  settings.sigma = 10;
  settings.strength = settings.chroma_strength = 0;
  settings.temporal = 0;
  draw_frame(&noisy, kSigma);
  frame = noisy;
  planes_of(&frame, planes);
  expect(nonlocal_denoiser_filter(denoiser, planes, 3, &settings) == 0, "a frame left alone");
  expect(memcmp(&frame, &noisy, sizeof frame) == 0, "the frame as it was at strength 0");
  expect(nonlocal_denoiser_noise(denoiser) == 10, "the noise as given");
  settings.strength = 1;
  expect(nonlocal_denoiser_filter(denoiser, planes, 1, &settings) == 0, "luma alone filtered");
  expect(memcmp(frame.y, noisy.y, sizeof frame.y) != 0, "another luma at strength 1");
  expect(memcmp(frame.u, noisy.u, sizeof frame.u) == 0, "chroma as it was where it is not given");
  nonlocal_denoiser_free(denoiser);
}

static void refuses(nonlocal_denoiser* denoiser, const nonlocal_plane* planes, int count,
                    const nonlocal_settings* settings, const char* message) {
  expect(nonlocal_denoiser_filter(denoiser, planes, count, settings) == -1, message);
  expect(strstr(nonlocal_last_error(), message) != NULL, message);
}

static void what_does_not_fit_is_refused(void) {
  static struct frame noisy, frame;
  nonlocal_plane planes[3];
  nonlocal_denoiser* denoiser = nonlocal_denoiser_new();
  nonlocal_settings settings = nonlocal_default_settings();
  settings.patch_size = 4;
  draw_frame(&noisy, kSigma);
  frame = noisy;
  planes_of(&frame, planes);
  refuses(denoiser, planes, 2, NULL, "1 or 3");
  refuses(denoiser, NULL, 3, NULL, "null");
  refuses(denoiser, planes, 3, &settings, "patch");
  planes[1].data = NULL;
  refuses(denoiser, planes, 3, NULL, "null");
  for (int temporal = 0; temporal < 2; ++temporal) {
    settings = nonlocal_default_settings();
    settings.temporal = temporal;
    settings.sigma = 10;
    planes_of(&frame, planes);
    planes[2].width = 3;
    refuses(denoiser, planes, 3, &settings, "80x60 of 8 bits like the first, got 3x60");
    planes[1].width = 3;
    refuses(denoiser, planes, 3, &settings, "half of each, got 3x60");
    planes_of(&frame, planes);
    planes[2].bit_depth = 10;
    planes[2].width = planes[2].stride / 2;
    refuses(denoiser, planes, 3, &settings, "got 40x60 of 10 bits");
  }
  planes_of(&frame, planes);
  const double wrong[] = {-1, 11, NAN};
  for (int i = 0; i < 3; ++i) {
    settings = nonlocal_default_settings();
    settings.strength = wrong[i];
    refuses(denoiser, planes, 3, &settings, "a strength of 0 to 10");
    settings = nonlocal_default_settings();
    settings.chroma_strength = wrong[i];
    refuses(denoiser, planes, 3, &settings, "a strength of 0 to 10");
  }
  settings = nonlocal_default_settings();
  settings.sigma = NAN;
  refuses(denoiser, planes, 3, &settings, "a sigma of 0 to 100");
  settings.sigma = 101;
  refuses(denoiser, planes, 3, &settings, "a sigma of 0 to 100");
  settings.strength = settings.chroma_strength = 0;
  settings.sigma = 10;
  settings.search_size = -7;
  refuses(denoiser, planes, 3, &settings, "search_size");
  expect(memcmp(&frame, &noisy, sizeof frame) == 0, "the frame as it was after errors");
  expect(nonlocal_denoiser_refine_with(denoiser, "/no/such.safetensors") == -1, "no such network");
  expect(strstr(nonlocal_last_error(), "/no/such.safetensors") != NULL, "its name in the message");
  nonlocal_denoiser_free(denoiser);
  nonlocal_denoiser_free(NULL);
}

int main(void) {
  frames_get_better(NULL);
  frames_get_better("refine_balanced");
  settings_count();
  what_does_not_fit_is_refused();
  return failures != 0;
}
