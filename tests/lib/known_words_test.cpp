// The words that a model knows: slips, contractions, other scripts, files without a list.
#include "nonlocal/known_words.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "folder_test.h"
#include "model/safetensors.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

using Words = std::vector<std::string>;

class KnownWordsTest : public nonlocal::testing::FolderTest {
 protected:
  KnownWords of(const std::map<std::string, std::string>& metadata) {
    const std::string path = (folder_ / "words.safetensors").string();
    model::write_safetensors(path, metadata, {{"x", {1}, {0}}});
    return KnownWords(path);
  }
  KnownWords some() { return of({{"words", "warm warmer sunset a don make it été b w"}}); }
};

TEST_F(KnownWordsTest, OthersAreNamedOnceInTheirOrder) {
  EXPECT_EQ(some().unknown_words("A zebra makes it warm; a ZEBRA, sunset grue"),
            (Words{"zebra", "makes", "grue"}));
}

TEST_F(KnownWordsTest, AllOfThemAreKnownWhateverTheCase) {
  EXPECT_EQ(some().unknown_words("Make it WARMER, b/w, Don't!"), Words{});
  EXPECT_EQ(some().unknown_words("\xc3\x89T\xc3\x89, e\xcc\x81t\xc3\xa9"), Words{});
}

TEST_F(KnownWordsTest, ASlipOfALongWordIsKnown) {
  const KnownWords words = some();
  for (const char* slip :
       {"sunsett", "suunset", "sunse", "sunst", "sunsat", "sunsex", "snuset", "sunste", "sunest"}) {
    EXPECT_EQ(words.unknown_words(slip), Words{}) << slip;
    EXPECT_EQ(words.corrected(slip), "sunset");
  }
  // What is not undone is said, too.
  for (const char* other : {"xsunset", "unset", "aunset", "usnset", "sunsetttt", "nusest", "snusett",
                            "sxnsxt", "tesnus", "sunsetaa", "uset"}) {
    EXPECT_EQ(words.unknown_words(other), Words{other});
    EXPECT_EQ(words.corrected(other), other);
  }
}

TEST_F(KnownWordsTest, ASlipOfAShortWordIsAnotherWord) {
  EXPECT_EQ(some().unknown_words("worm warn mak"), (Words{"worm", "warn", "mak"}));
}

TEST_F(KnownWordsTest, SlipsAreUndone) {
  const KnownWords words = of({{"words", "darker dark darks contrast warmer sunset more it"}});
  EXPECT_EQ(words.corrected("More CONTARST, darkr  sunset!"), "more contrast, darker sunset!");
  EXPECT_EQ(words.corrected("wramer sunsett; sunsat"), "warmer sunset; sunset");
  for (const char* kept : {"Warmer Sunset  ", "wunset", "moer", "zebra", "sunsaat", "", "42 \xff"}) {
    EXPECT_EQ(words.corrected(kept), kept);
  }
  EXPECT_EQ(of({}).corrected("sunst"), "sunst");
}

TEST_F(KnownWordsTest, NumbersAndSignsAreNoWords) {
  EXPECT_EQ(some().unknown_words("20 %, #42 -> \xf0\x9f\x98\x80 !"), Words{});
  EXPECT_EQ(some().unknown_words(""), Words{});
  EXPECT_EQ(some().unknown_words("\xff\xfe"), Words{});
}

TEST_F(KnownWordsTest, WithoutAListNothingIsUnknown) {
  const KnownWords none = of({});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.unknown_words("zebra"), Words{});
  EXPECT_FALSE(some().empty());
}

TEST_F(KnownWordsTest, FilesThatAreNoneAreRefused) {
  EXPECT_THROW(KnownWords((folder_ / "none.safetensors").string()), ModelError);
}

TEST_F(KnownWordsTest, LongTextsAreQuick) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) {
    text += "sunsex warmar ";
  }
  EXPECT_EQ(some().unknown_words(text + std::string(1'000'000, 'q')).size(), 1U);
}

}  // namespace
}  // namespace nonlocal
