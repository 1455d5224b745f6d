#include "text/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/utf8.h"
#include "files/gguf.h"
#include "files/gguf_bytes_test.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/stream_decoder.h"

namespace millrace {
namespace {

using Ids = std::vector<int32_t>;

void add(Vocab& vocab, std::string text, TokenType type = TokenType::normal) {
  vocab.tokens.push_back(std::move(text));
  vocab.types.push_back(type);
}

// All bytes at their own ids, then "ab" 256, "abc" 257, "<|im_end|>" 258, "<tool>" 259.
Vocab small_vocab() {
  Vocab vocab;
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    append_utf8(text, byte_level_char(static_cast<uint8_t>(byte)));
    add(vocab, text);
  }
  add(vocab, "ab");
  add(vocab, "abc");
  add(vocab, "<|im_end|>", TokenType::control);
  add(vocab, "<tool>", TokenType::user_defined);
  vocab.merges = {{'a', 'b', 256}, {256, 'c', 257}};
  vocab.eos = 258;
  vocab.bos = 258;
  vocab.prefix = {258};
  return vocab;
}

Tokenizer made(Vocab vocab) {
  auto tokenizer = Tokenizer::make(std::move(vocab));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return std::move(*tokenizer);
}

Ids encode(const Tokenizer& tokenizer, std::vector<TextPart> parts, bool wrap = false) {
  auto ids = tokenizer.encode(parts, wrap);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  return std::move(*ids);
}

void expect_refused(Vocab vocab, Code code, std::string_view why) {
  const auto tokenizer = Tokenizer::make(std::move(vocab));
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), code);
  EXPECT_NE(tokenizer.status().message().find(why), std::string_view::npos)
      << tokenizer.status().message();
}

TEST(Tokenizer, JoinsPairsInTheirOrder) {
  const Tokenizer t = made(small_vocab());
  EXPECT_EQ(t.encode("xabcab").value(), (Ids{'x', 257, 256}));
  EXPECT_EQ(t.encode("").value(), Ids{});
  EXPECT_EQ(t.encode("a", true).value(), (Ids{258, 'a'}));
}

TEST(Tokenizer, TextNeverBecomesAControlToken) {
  Vocab vocab = small_vocab();
  add(vocab, "<s>", TokenType::control);
  add(vocab, "<s");
  vocab.merges.push_back({'<', 's', 261});
  vocab.merges.push_back({261, '>', 260});
  vocab.ignore_merges = true;
  const Tokenizer t = made(std::move(vocab));
  EXPECT_EQ(t.encode("<s>").value(), (Ids{261, '>'}));
  EXPECT_EQ(t.encode("<|im_end|>").value().size(), 10u);
  EXPECT_EQ(encode(t, {{"<s>", true}}), Ids{260});
}

TEST(Tokenizer, ControlTokensCountInsideMarkedPartsAlone) {
  const Tokenizer t = made(small_vocab());
  EXPECT_EQ(encode(t, {{"a<|im_end|>", true}, {"b", false}}), (Ids{'a', 258, 'b'}));
  EXPECT_EQ(encode(t, {{"<|im_", true}, {"end|>", true}}), Ids{258});
  EXPECT_EQ(encode(t, {{"<|im_", true}, {"end|>", false}}).size(), 10u);
  EXPECT_EQ(encode(t, {{"<|im_", false}, {"end|>", true}}).size(), 10u);
  EXPECT_EQ(encode(t, {{"", true}, {"<|im_end|>", false}, {"", true}}).size(), 10u);
}

TEST(Tokenizer, WordsCrossTheBordersOfParts) {
  const Tokenizer t = made(small_vocab());
  EXPECT_EQ(encode(t, {{"a", true}, {"b", false}, {"c", true}}), Ids{257});
}

TEST(Tokenizer, AddedTokensAreFoundAnywhere) {
  EXPECT_EQ(made(small_vocab()).encode("ab<tool>c").value(), (Ids{256, 259, 'c'}));
}

TEST(Tokenizer, AddedTokensTakeBlanksAlongAndKeepOutOfWords) {
  Vocab vocab = small_vocab();
  vocab.added = {{259, false, true, true, false}};
  EXPECT_EQ(made(vocab).encode("a \t<tool>\u3000 b").value(), (Ids{'a', 259, 'b'}));
  vocab.added = {{259, false, false, false, true}};
  const Tokenizer t = made(vocab);
  EXPECT_EQ(t.encode("a <tool> b").value().size(), 5u);
  EXPECT_EQ(t.encode("a<tool> b").value().size(), 9u);
}

TEST(Tokenizer, OddTokensAreEndsByName) {
  Vocab vocab = small_vocab();
  add(vocab, "<|eot_id|>");  // not marked as control
  add(vocab, "<|end|>");
  Tokenizer t = made(vocab);
  EXPECT_TRUE(t.is_eog(258) && t.is_eog(260) && t.is_eog(261) && !t.is_eog('a') && !t.is_eog(-1));
  EXPECT_TRUE(t.is_control(260));
  add(vocab, "<|return|>");
  EXPECT_FALSE(made(vocab).is_eog(261));
}

TEST(Tokenizer, DecodingLeavesControlTokensOutUnlessAsked) {
  const Tokenizer t = made(small_vocab());
  const Ids ids = {258, 257, 258, -5, 1 << 20, 0xC3};
  EXPECT_EQ(t.decode(ids), "abc\xC3");
  EXPECT_EQ(t.decode(ids, true), "<|im_end|>abc<|im_end|>\xC3");
  EXPECT_EQ(t.piece(257), "abc");
  EXPECT_EQ(t.piece(-1), "");
  EXPECT_EQ(t.special_id("<tool>"), 259);
  EXPECT_EQ(t.special_id("ab"), -1);
}

TEST(Tokenizer, AMillionTimesTheSameIsNotQuadratic) {
  const Tokenizer t = made(small_vocab());
  std::string text;
  for (int i = 0; i < 1 << 18; ++i) text += "ab";
  EXPECT_EQ(t.encode(text).value().size(), size_t{1} << 18);
}

TEST(Tokenizer, RefusesWhatCannotBe) {
  expect_refused({}, Code::corrupt, "0 tokens");
  Vocab vocab = small_vocab();
  vocab.types.pop_back();
  expect_refused(vocab, Code::corrupt, "token types");
  vocab = small_vocab();
  vocab.bos = 260;
  expect_refused(vocab, Code::corrupt, "bos");
  vocab = small_vocab();
  vocab.eog = {-7};
  expect_refused(vocab, Code::corrupt, "special token");
  vocab = small_vocab();
  vocab.merges.push_back({1, 2, 999});
  expect_refused(vocab, Code::corrupt, "merge 2");
  vocab = small_vocab();
  add(vocab, std::string(300, 'x'), TokenType::user_defined);
  expect_refused(vocab, Code::unsupported, "300 bytes");
  vocab = small_vocab();
  vocab.model = Vocab::Model::scores;
  expect_refused(vocab, Code::corrupt, "0 scores");
  vocab.scores.assign(vocab.tokens.size(), std::nanf(""));
  expect_refused(vocab, Code::corrupt, "NaN");
}

TEST(Tokenizer, TakesVocabulariesThatAreOnlyOdd) {
  Vocab vocab = small_vocab();
  add(vocab, "ab");                         // twice
  add(vocab, "");                           // no text
  add(vocab, "", TokenType::control);       // neither
  vocab.merges.push_back({257, 257, 'a'});  // in a circle
  vocab.merges.push_back({'a', 'b', 260});  // a pair again
  const Tokenizer t = made(std::move(vocab));
  EXPECT_EQ(t.encode("ab").value(), Ids{256});
  EXPECT_TRUE(t.encode("abcabcabcabc").ok());
}

TEST(Tokenizer, ARunawayExpressionIsAnErrorNotAHang) {
  Vocab vocab = small_vocab();
  vocab.split = {{R"((?:x+x+)+[yz])"}};
  const auto ids = made(std::move(vocab)).encode(std::string(5000, 'x'));
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.status().code(), Code::unsupported);
}

GgufBytes gguf_with(std::string_view model, std::string_view pre, std::string_view merge) {
  GgufBytes out;
  out.begin(0, 5).string("tokenizer.ggml.model", model).string("tokenizer.ggml.pre", pre);
  out.array("tokenizer.ggml.tokens", GgufType::string, 3).text("a").text("b").text("ab");
  out.array("tokenizer.ggml.merges", GgufType::string, 1).text(merge);
  out.u32("tokenizer.ggml.eos_token_id", 2);
  return out;
}

TEST(TokenizerGguf, SaysWhatIsWrong) {
  const auto why = [](const GgufBytes& bytes) {
    const auto file = Gguf::read(bytes.span(), "x.gguf");
    EXPECT_TRUE(file.ok()) << file.status().message();
    const auto vocab = vocab_from_gguf(file.value());
    return vocab.ok() ? std::string("ok") : std::string(vocab.status().message());
  };
  const auto holds = [&](const GgufBytes& bytes, std::string_view part) {
    return why(bytes).find(part) != std::string::npos;
  };
  EXPECT_EQ(why(gguf_with("gpt2", "gpt-2", "a b")), "ok");
  EXPECT_TRUE(holds(gguf_with("bert", "gpt-2", "a b"), "'bert'"));
  EXPECT_TRUE(holds(gguf_with("gpt2", "nope", "a b"), "'nope'"));
  EXPECT_TRUE(holds(gguf_with("gpt2", "gpt-2", "b a"), "merges [0]"));
  EXPECT_TRUE(holds(gguf_with("gpt2", "gpt-2", "ab"), "not a pair"));
  EXPECT_TRUE(holds(gguf_with("llama", "", "a b"), "tokenizer.ggml.scores"));
}

HfFiles json(std::string tokenizer) {
  return {std::move(tokenizer), "", "", ""};
}

std::string with(std::string_view parts) {
  return fmt::format(
      R"({{"model":{{"type":"BPE","vocab":{{"a":0,"b":1,"ab":2}},"merges":["a b"]}}{}}})", parts);
}

TEST(TokenizerJson, SaysWhatIsWrong) {
  const auto why = [](std::string text) {
    const auto vocab = vocab_from_tokenizer_json(json(std::move(text)));
    return vocab.ok() ? std::string("ok") : std::string(vocab.status().message());
  };
  const auto expect = [&](std::string text, std::string_view part) {
    EXPECT_NE(why(text).find(part), std::string::npos) << text << ": " << why(text);
  };
  EXPECT_EQ(why(with("")), "ok");
  expect("{", "not valid JSON");
  expect("[]", "not a JSON object");
  expect(std::string(100000, '['), "nested more than");
  expect(R"({"model":{"type":"WordPiece"}})", "'WordPiece'");
  expect(with(R"(,"normalizer":{"type":"Lowercase"})"), "'Lowercase'");
  expect(with(R"(,"pre_tokenizer":{"type":"Punctuation"})"), "'Punctuation'");
  expect(with(R"(,"post_processor":{"type":"BertProcessing"})"), "'BertProcessing'");
  expect(with(R"(,"added_tokens":[{"id":0,"content":"x"}])"), "both have the id 0");
  expect(with(R"(,"added_tokens":[{"id":4000000,"content":"x"}])"), "the limit here");
  expect(R"({"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}})", "id of 'a'");
  expect(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a c"]}})", "merges[0]");
  expect(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[["a"]]}})", "merges[0]");
  expect(with(R"(,"normalizer":{"type":"Replace","pattern":{"String":""},"content":"x"})"),
         "Replace");
  std::string grows;
  for (int i = 0; i < 9; ++i)
    grows += fmt::format(R"({}{{"type":"Replace","pattern":{{"String":"a"}},"content":"aaa"}})",
                         i == 0 ? "" : ",");
  expect(with(R"(,"normalizer":{"type":"Sequence","normalizers":[)" + grows + "]}"), "longer");
}

TEST(TokenizerJson, TakesEndsFromTheFilesBeside) {
  HfFiles files = json(with(R"(,"added_tokens":[{"id":3,"content":"<e>","special":true}])"));
  files.tokenizer_config =
      R"({"bos_token":{"content":"<e>"},"eos_token":"<e>","add_bos_token":true})";
  files.generation = R"({"eos_token_id":[3,1]})";
  auto vocab = vocab_from_tokenizer_json(files);
  ASSERT_TRUE(vocab.ok()) << vocab.status().message();
  const Tokenizer t = made(std::move(*vocab));
  EXPECT_EQ(t.bos(), 3);
  EXPECT_EQ(t.eos(), 3);
  EXPECT_TRUE(t.is_eog(1));
  EXPECT_EQ(t.encode("ab", true).value(), (Ids{3, 2}));
  files.generation = R"({"eos_token_id":77})";
  EXPECT_FALSE(vocab_from_tokenizer_json(files).ok());
}

TEST(StreamDecoder, GivesOutWholeCharactersAlone) {
  StreamDecoder decoder;
  EXPECT_EQ(decoder.push("a\xF0\x9F"), "a");
  EXPECT_EQ(decoder.push("\x98"), "");
  EXPECT_EQ(decoder.push("\x80!"), "😀!");
  EXPECT_EQ(decoder.push("\xE2\x82"), "");
  EXPECT_EQ(decoder.push("x"), "\uFFFDx");
  EXPECT_EQ(decoder.push("\xFF\xC3"), "\uFFFD");
  EXPECT_EQ(decoder.flush(), "\uFFFD");
  EXPECT_EQ(decoder.flush(), "");
}

TEST(StreamDecoder, CutsChangeNothing) {
  const std::string bytes = "é語\xF0\x9F\x98\x80\xE2\x82\xFF\xC3z\xED\xA0\x80";
  StreamDecoder whole;
  const std::string want = whole.push(bytes) + whole.flush();
  for (size_t step = 1; step < 5; ++step) {
    StreamDecoder decoder;
    std::string got;
    for (size_t at = 0; at < bytes.size(); at += step)
      got += decoder.push(std::string_view(bytes).substr(at, step));
    EXPECT_EQ(got + decoder.flush(), want);
  }
}

TEST(Normalize, OrdersAMegabyteOfMarks) {
  std::string text = "a";
  for (int i = 0; i < 1 << 18; ++i) text += "\u0308\u0323";
  const std::string out = normalize(text, {{NormalizeStep::Kind::nfc, "", ""}}, true);
  EXPECT_TRUE(out.starts_with("\u1EA1\u0323"));
  EXPECT_TRUE(out.ends_with("\u0308\u0308"));
}

TEST(Oniguruma, RefusesWhatMeansSomethingElse) {
  for (const char* same : {R"(\p{L}+)", "[^a-z]?", "(?i:x)|(?!y)", R"([\[\]])", R"(\x{41}+)"})
    EXPECT_EQ(from_oniguruma(same).value(), same);
  for (const char* other : {"[a&&b]", "[a[b]]", R"(\bx)", "x{2}+", "x{,3}", "(?<n>x)", "(*ACCEPT)",
                            "(?R)", "(?1)", "x\\", "[]", R"(\pL)"})
    EXPECT_FALSE(from_oniguruma(other).ok()) << other;
  EXPECT_EQ(from_oniguruma(R"(\p{Han})").value(), R"(\p{sc:Han})");
}

}  // namespace
}  // namespace millrace
