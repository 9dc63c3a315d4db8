#include "model/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "nonlocal/error.h"

namespace nonlocal::model {
namespace {

namespace fs = std::filesystem;

class SafetensorsTest : public ::testing::Test {
 protected:
  SafetensorsTest() {
    std::string name = (fs::temp_directory_path() / "safetensors_test.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~SafetensorsTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path() const { return (folder_ / "a.safetensors").string(); }
  [[nodiscard]] std::string folder() const { return folder_.string(); }

  void write(const std::string& bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }

  // A file with this header, its length told as `length`, and data behind it.
  void write(const std::string& header, const std::string& data, std::uint64_t length) const {
    std::string bytes;
    for (int i = 0; i < 8; ++i) {
      bytes += static_cast<char>(length >> (8 * i) & 255);
    }
    write(bytes + header + data);
  }
  void write(const std::string& header, const std::string& data) const { write(header, data, header.size()); }

  // What reading the file says is wrong with it, without the file's name.
  [[nodiscard]] std::string problem() const {
    try {
      const Safetensors file(path());
    } catch (const ModelError& e) {
      const std::string text = e.what();
      EXPECT_EQ(text.find(path() + ": "), 0U) << text;
      return text.substr(path().size() + 2);
    }
    return "";
  }
  [[nodiscard]] std::string problem(const std::string& header, const std::string& data) const {
    write(header, data);
    return problem();
  }

 private:
  fs::path folder_;
};

using SafetensorsFile = SafetensorsTest;

TEST_F(SafetensorsFile, IsReadAsItWasWritten) {
  write_safetensors(path(), {{"format", "test"}, {"quote", "\"\n"}},
                    {{"b", {2, 3}, {1, -2, 3.5F, 0, 1e-30F, 1e30F}}, {"a", {}, {7}}, {"empty", {0, 5}, {}}});
  const Safetensors file(path());
  EXPECT_EQ(file.metadata("format"), "test");
  EXPECT_EQ(file.metadata("quote"), "\"\n");
  EXPECT_EQ(file.metadata("other"), std::nullopt);
  EXPECT_TRUE(file.has("a"));
  EXPECT_FALSE(file.has("c"));
  EXPECT_EQ(file.shape("b"), (Shape{2, 3}));
  EXPECT_EQ(file.floats("b", {2, 3}), (std::vector<float>{1, -2, 3.5F, 0, 1e-30F, 1e30F}));
  EXPECT_EQ(file.floats("a", {}), std::vector<float>{7});
  EXPECT_TRUE(file.floats("empty", {0, 5}).empty());
}

// 1, -2, the smallest of half precision, 65504; 1, -2, 2^-133, the largest of bfloat16.
TEST_F(SafetensorsFile, HalvesAreRead) {
  const std::string header =
      R"({"h":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[4],"data_offsets":[8,16]}}  )";
  write(header, std::string("\x00\x3c\x00\xc0\x01\x00\xff\x7b\x80\x3f\x00\xc0\x01\x00\x7f\x7f", 16));
  const Safetensors file(path());
  EXPECT_EQ(file.floats("h", {4}), (std::vector<float>{1, -2, 0x1p-24F, 65504}));
  EXPECT_EQ(file.floats("b", {4}), (std::vector<float>{1, -2, 0x1p-133F, 0x1.fep127F}));
}

TEST_F(SafetensorsFile, OtherTypesAreNoFloats) {
  write(R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", std::string(8, '\0'));
  EXPECT_THROW(static_cast<void>(Safetensors(path()).floats("a", {1})), ModelError);
}

TEST_F(SafetensorsFile, ValuesAreFinite) {
  for (const std::string& value : {std::string("\x00\x00\xc0\x7f", 4), std::string("\x00\x00\x80\xff", 4)}) {
    write(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", value);
    EXPECT_THROW(static_cast<void>(Safetensors(path()).floats("a", {1})), ModelError);
  }
  write(R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})", std::string("\x00\x7c", 2));
  EXPECT_THROW(static_cast<void>(Safetensors(path()).floats("a", {1})), ModelError);
}

TEST_F(SafetensorsFile, ShapesAreCompared) {
  write_safetensors(path(), {}, {{"a", {2, 3}, std::vector<float>(6)}});
  const Safetensors file(path());
  try {
    static_cast<void>(file.floats("a", {3, 2}));
    FAIL();
  } catch (const ModelError& e) {
    EXPECT_EQ(e.what(), path() + ": tensor \"a\": expected the shape [3, 2], found [2, 3]");
  }
  EXPECT_THROW(static_cast<void>(file.shape("b")), ModelError);
}

TEST_F(SafetensorsFile, NoFileIsSaidToBeNone) {
  EXPECT_THROW(Safetensors(folder() + "/none"), ModelError);
  EXPECT_THROW(Safetensors{folder()}, ModelError);
  EXPECT_THROW(Safetensors("/dev/zero"), ModelError);
  EXPECT_THROW(write_safetensors(folder() + "/none/a", {}, {}), ModelError);
  EXPECT_THROW(write_safetensors(path(), {}, {{"a", {2}, {1}}}), ModelError);
}

TEST_F(SafetensorsFile, LengthsAreChecked) {
  write("");
  EXPECT_EQ(problem(), "expected 8 bytes with the header's length, the file has 0");
  write("1234567");
  EXPECT_EQ(problem(), "expected 8 bytes with the header's length, the file has 7");
  for (const std::uint64_t length : {std::uint64_t{3}, std::uint64_t{100'000'001}, ~std::uint64_t{0},
                                     ~std::uint64_t{7}, std::uint64_t{1} << 63}) {
    write("{}", "", length);
    EXPECT_NE(problem().find("truncated, or no safetensors file"), std::string::npos) << length;
  }
  write("{}", "");
  EXPECT_EQ(problem(), "");
}

TEST_F(SafetensorsFile, HeadersAreChecked) {
  EXPECT_NE(problem("", ""), "");
  for (const std::string header :
       {"[]",
        " {}",
        "{",
        "{}}",
        "{} x",
        "{\"a\":1}",
        "{\"a\":[]}",
        "{\"__metadata__\":[]}",
        "{\"__metadata__\":{\"a\":1}}",
        "{\"a\":{}}",
        R"({"a":{"dtype":"F32","shape":[]}})",
        R"({"a":{"dtype":"F32","data_offsets":[0,0]}})",
        R"({"a":{"shape":[0],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":7,"shape":[0],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"F33","shape":[0],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"F32","shape":[0.0],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"F32","shape":["0"],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"F32","shape":0,"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0]}})",
        R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0,0]}})",
        R"({"a":{"dtype":"F32","shape":[0],"data_offsets":{}}})",
        R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[-1,-1]}})",
        R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,0]}})",
        "{\"\xff\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}"}) {
    EXPECT_NE(problem(header, ""), "") << header;
  }
  EXPECT_EQ(problem(R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", "1234"),
            "tensor \"a\": expected a known \"dtype\", found \"F33\"");
  EXPECT_NE(problem("{" + std::string(1'000'000, '['), ""), "");
  EXPECT_NE(problem("{\"a\":" + std::string(1'000'000, '['), "").find("nested too deeply"),
            std::string::npos);
  std::string objects = "{\"a\":";
  for (int i = 0; i < 100'000; ++i) {
    objects += "{\"a\":";
  }
  EXPECT_NE(problem(objects, "").find("nested too deeply"), std::string::npos);
}

TEST_F(SafetensorsFile, NamesAreThereOnce) {
  const std::string entry = R"("a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  EXPECT_EQ(problem("{" + entry + "," + entry + "}", ""), "its header has \"a\" twice");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","dtype":"F32","shape":[0],"data_offsets":[0,0]}})", ""),
            "its header has \"dtype\" twice");
  EXPECT_EQ(problem(R"({"__metadata__":{"k":"1","k":"2"}})", ""), "its header has \"k\" twice");
  // In different objects they may be the same.
  EXPECT_EQ(problem(R"({"__metadata__":{"a":"1"},)" + entry + "}", ""), "");
}

// Control characters of a name do not reach the terminal.
TEST_F(SafetensorsFile, NamesAreEscaped) {
  const std::string text = problem(R"({"\u001b[2J\u009b)" + std::string(1000, 'x') +
                                       R"(":{"dtype":"?","shape":[0],"data_offsets":[0,0]}})",
                                   "");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_LT(text.size(), 300U);
  EXPECT_NE(text, "");
}

TEST_F(SafetensorsFile, PlacesAreChecked) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)" + a +
           R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + b + "}}";
  };
  const std::string eight(8, '\0');
  EXPECT_EQ(problem(two("[0,4]", "[4,8]"), eight), "");
  EXPECT_EQ(problem(two("[4,8]", "[0,4]"), eight), "");
  EXPECT_EQ(problem(two("[0,4]", "[0,4]"), eight),
            "tensor \"b\": expected its bytes to begin at 4, where the one before ends, found 0");
  EXPECT_NE(problem(two("[0,4]", "[2,6]"), eight), "");                     // they overlap
  EXPECT_NE(problem(two("[0,4]", "[5,9]"), eight + "x"), "");               // a gap
  EXPECT_NE(problem(two("[1,5]", "[5,9]"), eight + "x"), "");               // one before
  EXPECT_NE(problem(two("[0,4]", "[4,8]"), eight + "x"), "");               // one behind
  EXPECT_NE(problem(two("[0,4]", "[4,8]"), eight.substr(1)), "");           // truncated
  EXPECT_NE(problem(two("[0,4]", "[8,4]"), eight), "");                     // backwards
  EXPECT_NE(problem(two("[0,4]", "[4,7]"), eight), "");                     // too short for its shape
  EXPECT_NE(problem(two("[0,4]", "[18446744073709551612,0]"), eight), "");  // wraps
  EXPECT_NE(problem(two("[0,4]", "[4,18446744073709551615]"), eight), "");
  // Products that are no number of 64 bits, or would be small after wrapping.
  for (const std::string shape :
       {"[4294967296,4294967296]", "[9223372036854775808,2]", "[4611686018427387905]"}) {
    EXPECT_NE(problem(R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,4]}})", "1234"), "")
        << shape;
  }
  // No values at all, whatever the other dimensions.
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[0,0]}})", ""),
            "");
}

// A file of gigabytes whose header is wrong is not read.
TEST_F(SafetensorsFile, HeadersAreReadFirst) {
  const auto most_memory = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // KiB
  };
  const auto before = most_memory();
  constexpr std::uintmax_t kSize = std::uintmax_t{512} << 20;  // no room is taken by what is never written
  write(std::string(8, '\xff'));
  fs::resize_file(path(), kSize);
  EXPECT_NE(problem().find("truncated, or no safetensors file"), std::string::npos);
  write(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234");
  fs::resize_file(path(), kSize);
  EXPECT_NE(problem().find("bytes, found 4"), std::string::npos);
  EXPECT_LT(most_memory() - before, 100 << 10);
}

// Whatever bytes a file has, reading it ends well or with ModelError.
TEST_F(SafetensorsFile, DamageIsFound) {
  write_safetensors(path(), {{"format", "test"}}, {{"a", {2, 3}, std::vector<float>(6, 1)}, {"b", {1}, {2}}});
  std::ifstream in(path(), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    EXPECT_NE(problem(), "") << size;
  }
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = whole;
    for (unsigned n = random() % 4 + 1; n > 0; --n) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    write(damaged);
    try {
      const Safetensors file(path());
      static_cast<void>(file.floats("a", {2, 3}));
    } catch (const ModelError&) {
    }
  }
}

}  // namespace
}  // namespace nonlocal::model
