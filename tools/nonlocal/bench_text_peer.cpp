#include "bench_text_peer.h"

#include <fstream>
#include <initializer_list>

#include "failure.h"
#include "random_clip.h"

namespace nonlocal::tools {
namespace {

// Arguments: tokens, threads, text width, heads, layers, the same of vision, patch, grid, where the result
// goes: the least milliseconds of both towers, and the library that multiplies.
constexpr const char* kScript = R"(
import sys, time
import torch
from torch import nn
tokens, threads, *sizes, patch, grid = map(int, sys.argv[1:-1])

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.parts, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x, mask):
        n, width = x.shape
        q, k, v = self.parts(self.norm1(x)).view(n, 3, self.heads, -1).permute(1, 2, 0, 3)
        scores = q @ k.transpose(1, 2) * (width // self.heads) ** -0.5
        if mask is not None:
            scores = scores + mask
        x = x + self.out((torch.softmax(scores, 2) @ v).transpose(0, 1).reshape(n, width))
        hidden = self.fc1(self.norm2(x))
        return x + self.fc2(hidden * torch.sigmoid(1.702 * hidden))

def tower(width, heads, layers):
    return nn.ModuleList([Block(width, heads) for _ in range(layers)])

def run(blocks, x, mask):
    for block in blocks:
        x = block(x, mask)
    return x

text, vision = tower(*sizes[:3]), tower(*sizes[3:])
table, mask = torch.randn(tokens, sizes[0]), torch.full((tokens, tokens), -torch.inf).triu(1)
to_patches = nn.Conv2d(3, sizes[3], patch, patch, bias=False)
picture = torch.rand(1, 3, grid * patch, grid * patch)
first, positions = torch.randn(1, sizes[3]), torch.randn(grid * grid + 1, sizes[3])
project_text, project_vision = nn.Linear(sizes[0], 512, bias=False), nn.Linear(sizes[3], 512, bias=False)
encode_text = lambda: project_text(run(text, table, mask)[-1])
encode_vision = lambda: project_vision(
    run(vision, torch.cat([first, to_patches(picture)[0].flatten(1).T]) + positions, None)[0])

def least(work, count):
    best = float("inf")
    for _ in range(count):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return 1000 * best

times = [float("inf"), float("inf")]
with torch.no_grad():
    for count in sorted({1, threads}):
        torch.set_num_threads(count)
        for i, work in enumerate((encode_text, encode_vision)):
            once = least(work, 1)
            times[i] = min(times[i], once, least(work, max(1, min(20, int(1000 / once)))))
names = {line.split()[-1].rsplit("/", 1)[-1] for line in open("/proc/self/maps") if ".so" in line}
blas = sorted(n for n in names if n.startswith(("libblas", "libopenblas", "libblis", "libmkl_rt")))
open(sys.argv[-1], "w").write(f"{times[0]} {times[1]} {'+'.join(blas) or 'unknown'}")
)";

}  // namespace

PyTorchTowers::PyTorchTowers(int tokens, int layers, int threads)
    : tokens_(tokens), layers_(layers), threads_(threads) {
  std::ofstream(folder_.file("towers.py")) << kScript;
}

TowerTimes PyTorchTowers::measure() {
  const std::string result = folder_.file("times");
  Arguments arguments{"/usr/bin/python3", folder_.file("towers.py")};
  for (const int n : {tokens_, threads_, kTextTower.width, kTextTower.heads, layers_, kVisionTower.width,
                      kVisionTower.heads, layers_, kPatch, kGrid})
    arguments.push_back(std::to_string(n));
  arguments.push_back(result);
  run_command(arguments);
  TowerTimes times;
  if (!(std::ifstream(result) >> times.text_ms >> times.vision_ms >> products_by_))
    throw Failure("PyTorch wrote no times");
  return times;
}

}  // namespace nonlocal::tools
