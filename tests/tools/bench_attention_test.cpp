// nonlocal bench attention: what it reports, of so few tokens that it takes no time. How fast anything is is
// not tested.
#include <nonlocal/attention.h>
#include <nonlocal/cpu.h>

#include <regex>

#include "support.h"

namespace {

using nlohmann::json;

class BenchAttentionTest : public ToolTest {
 protected:
  static json bench(const std::string& arguments) {
    return json::parse(must("$TOOL bench attention --json --seconds 0 " + arguments), nullptr, false);
  }
};

TEST_F(BenchAttentionTest, ReportsWhatItWasAskedFor) {
  const json result = bench("--tokens 50 --keys 70 --dim 24 --heads 3 --precision f32 --threads 2");
  EXPECT_EQ(result["tokens"], 50);
  EXPECT_EQ(result["keys"], 70);
  EXPECT_EQ(result["dim"], 24);
  EXPECT_EQ(result["heads"], 3);
  EXPECT_EQ(result["precision"], "f32");
  EXPECT_EQ(result["threads"], 2);
  EXPECT_EQ(result["calls"], 3);
  EXPECT_TRUE(result["peers"].is_null());
}

TEST_F(BenchAttentionTest, FiguresAgree) {
  const json result = bench("--tokens 300 --dim 16 --heads 2");
  const double ms = result["ms_min"];
  const double pairs = 2.0 * 300 * 300;
  ASSERT_GT(ms, 0);
  EXPECT_EQ(result["keys"], 300);
  EXPECT_GE(result["ms_median"], ms);
  EXPECT_NEAR(result["ns_per_pair"], ms * 1e6 / pairs, 1e-6 * ms * 1e6 / pairs);
  const double gflop_per_s = 2 * pairs * (16 + 16) / ms / 1e6;
  EXPECT_NEAR(result["gflop_per_s"], gflop_per_s, 1e-6 * gflop_per_s);
  EXPECT_GT(result["working_memory_mib"], 0);
}

TEST_F(BenchAttentionTest, EveryInstructionSetIsExact) {
  for (const std::string& isa : nonlocal::instruction_sets()) {
    const json result = bench("--tokens 200 --precision f32 --isa " + isa);
    EXPECT_EQ(result["isa"], isa);
    EXPECT_LT(result["relative_error"], 1e-4) << isa;
    EXPECT_GT(result["relative_error"], 0) << isa;
  }
  if (nonlocal::is_supported(nonlocal::AttentionPrecision::kBfloat16)) {
    const json result = bench("--tokens 200");
    EXPECT_EQ(result["precision"], "bf16");
    EXPECT_LT(result["relative_error"], 2e-2);
    EXPECT_GT(result["relative_error"], 1e-4);
  }
}

TEST_F(BenchAttentionTest, MeasuresPeersInTurn) {
  const json result =
      json::parse(must("$TOOL bench attention --json --peers --rounds 1 --tokens 200"), nullptr, false);
  const json products = result["peers"]["onednn_matmul"];
  ASSERT_TRUE(products["ms_min"].is_number()) << result;
  EXPECT_NEAR(products["ratio"], products["ms_min"].get<double>() / result["ms_min"].get<double>(),
              1e-6 * products["ratio"].get<double>());
  EXPECT_EQ(products["measurements"], 1);
  // Not everywhere installed.
  const json pytorch = result["peers"]["pytorch"];
  EXPECT_TRUE(pytorch.is_null() || pytorch["ms_min"].is_number()) << result;
}

// PyTorch's script wants a folder, oneDNN none.
TEST_F(BenchAttentionTest, APeersFailureIsItsOwn) {
  const json peers = json::parse(
      must("TMPDIR=$PWD/none $TOOL bench attention --json --peers --rounds 1 --tokens 100"))["peers"];
  EXPECT_TRUE(peers["onednn_matmul"]["ratio"].is_number()) << peers;
  EXPECT_TRUE(peers["pytorch"].is_null() || peers["pytorch"]["problem"].is_string()) << peers;
}

TEST_F(BenchAttentionTest, PrintsTheSameAsText) {
  const Outcome outcome = run("$TOOL bench attention --tokens 64 --precision f32 --seconds 0 --quiet");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* expected :
       {"64 queries, 64 keys, 1 head of 64 channels, f32", "ns a pair of query and key",
        "of the formula's largest output", "MiB of working memory"})
    EXPECT_TRUE(std::regex_search(outcome.out, std::regex(expected))) << expected << "\n" << outcome.out;
}

TEST_F(BenchAttentionTest, RefusesWhatMakesNoSense) {
  for (const std::string arguments : {"--tokens 0", "--dim 5000", "--heads 0", "--precision f16",
                                      "--isa none", "--rounds 3", "--seconds nan", "--peers --seconds 1"}) {
    const Outcome outcome = run("$TOOL bench attention " + arguments);
    EXPECT_NE(outcome.status, 0) << arguments;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
  }
}

}  // namespace
