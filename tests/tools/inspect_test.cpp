// nonlocal inspect: what it says of both formats, and of files that are none.
#include "support.h"

namespace {

const std::string kParity = PARITY_FOLDER "/";

class InspectTest : public ToolTest {};

TEST_F(InspectTest, SaysWhatANetworkHolds) {
  const Outcome outcome = run("$TOOL inspect --json " + kParity + "network_u_net.safetensors");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto model = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(model["version"], "2");
  EXPECT_EQ(model["layers"].size(), 9U);
  EXPECT_EQ(model["layers"][0]["operations"], 2 * 8 * 3 * 9);
  EXPECT_EQ(model["metadata"]["made_by"], "tests/parity/network.py");
  EXPECT_EQ(model["receptive_field"], model["layers"].back()["receptive_field"]);
  EXPECT_EQ(model["has_ranges"], false);
  EXPECT_NE(must("$TOOL inspect " + kParity + "network_restorer.safetensors").find("int8"),
            std::string::npos);
  const Outcome text = run("$TOOL inspect " + kParity + "network_embedded_gaussian.safetensors");
  EXPECT_EQ(text.status, 0);
  EXPECT_NE(text.out.find("block                    non_local"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("receptive field all"), std::string::npos) << text.out;
}

TEST_F(InspectTest, SaysWhatABundledModelHolds) {
  const Outcome outcome = run("$TOOL inspect --json refine_balanced");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto model = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(model["version"], "1");
  EXPECT_EQ(model["layers"].size(), 4U);
  EXPECT_NEAR(model["operations"].get<double>(), 11100, 100);  // tools/train/README.md
}

TEST_F(InspectTest, SaysWhetherThereIsAMeanInTime) {
  EXPECT_EQ(nlohmann::json::parse(must("$TOOL inspect --json restore"))["temporal_mean"]["h"], 4);
  EXPECT_NE(must("$TOOL inspect restore").find("the mean with the frame before, h 4"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(must("$TOOL inspect --json gaussian"))["temporal_mean"], nullptr);
}

TEST_F(InspectTest, WhatLiesBesideANetworkIsNotItsOwn) {
  must("cp " + kParity +
       "network_u_net.safetensors net.safetensors; echo '// of the training' > config.json");
  EXPECT_NE(must("$TOOL inspect net.safetensors").find("receptive field"), std::string::npos);
}

TEST_F(InspectTest, SaysWhatEncodesTextAndPictures) {
  must("mkdir folder; cp " + kParity + "planted_clipseg.safetensors folder/model.safetensors");
  const auto model = nlohmann::json::parse(must("$TOOL inspect --json folder"));
  EXPECT_EQ(model["kind"], "CLIPSeg");
  EXPECT_EQ(model["text"]["context"], 16);
  EXPECT_EQ(model["text"]["has_tokenizer"], true);
  EXPECT_EQ(model["vision"]["patch"], 8);
  EXPECT_EQ(model["vision"]["embedding"], 4);
  EXPECT_EQ(model["has_decoder"], true);
  EXPECT_EQ(model["filter"], nullptr);
  EXPECT_EQ(model["metadata"]["made by"], "tests/parity/planted.py");
  const auto clip = nlohmann::json::parse(must("$TOOL inspect --json " + kParity + "vision.safetensors"));
  EXPECT_EQ(clip["kind"], "an encoder of pictures");
  EXPECT_EQ(clip["text"], nullptr);
  const std::string grade = must("$TOOL inspect grade");
  EXPECT_NE(grade.find("a filter by cross-attention"), std::string::npos) << grade;
  EXPECT_NE(grade.find("\nfilter "), std::string::npos) << grade;
}

TEST_F(InspectTest, ANetworksFolderIsLikeItsFile) {
  must("mkdir folder other; cp " + kParity + "network_u_net.safetensors folder/model.safetensors");
  EXPECT_NE(must("$TOOL inspect folder").find("receptive field"), std::string::npos);
  // Neither a network nor anything of CLIP's: the file is named.
  must("cp " + kParity + "positional_encoding.safetensors other/model.safetensors");
  const Outcome outcome = run("$TOOL inspect other");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err.find("nonlocal: other/model.safetensors: "), 0U) << outcome.err;
}

TEST_F(InspectTest, SaysWhatIsWrong) {
  must("echo nonsense > bad.safetensors");
  for (const std::string name : {"bad.safetensors", "none.safetensors", "."}) {
    const Outcome outcome = run("$TOOL inspect " + name);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find("nonlocal: "), 0U) << outcome.err;
    EXPECT_NE(outcome.err.find(name), std::string::npos) << outcome.err;
  }
}

}  // namespace
