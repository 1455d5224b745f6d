// The conversation loop over a script of lines and a backend that answers from a list.
#include "cli/chat_terminal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <vector>

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

class Script final : public LineSource {
 public:
  explicit Script(std::deque<Line> lines) : lines_(std::move(lines)) {}
  Line read(const std::string&) override {
    if (lines_.empty()) return {Line::Kind::end, ""};
    Line line = lines_.front();
    lines_.pop_front();
    return line;
  }

 private:
  std::deque<Line> lines_;
};

Line typed(std::string text) {
  return {Line::Kind::text, std::move(text)};
}

// Ctrl-C, with this much typed in its line; or with something that was deleted again.
Line ctrl_c(std::string text = "") {
  const bool was_typed = !text.empty();
  return {Line::Kind::interrupted, std::move(text), was_typed};
}
const Line kCtrlCAfterDeleting{Line::Kind::interrupted, "", true};

// Repeats the question, word by word; "stop" makes it press Ctrl-C after its first word. A message
// is ten tokens of its prompt, and an answer has all that are left of the context or two.
class Echo final : public ChatBackend {
 public:
  explicit Echo(std::atomic<bool>& interrupted) : interrupted_(interrupted) {}
  int64_t n_ctx() const override { return context; }
  Result<std::vector<int32_t>> prompt(const Json& messages, const std::atomic<bool>&) override {
    asked = messages;
    return std::vector<int32_t>(10 * messages.size());
  }
  Result<Generated> answer(std::vector<int32_t> prompt, const Generation& how,
                           const std::function<void(std::string_view)>& on_text,
                           const std::atomic<bool>& stop) override {
    used = how;
    const std::string text = asked.back()["content"];
    if (text == "fail") return error(Code::unavailable, "no pages left");
    on_text("You said ");
    if (text == "stop") interrupted_.store(true);
    if (!stop.load()) on_text(text);
    Generated done;
    done.n_prompt = static_cast<int64_t>(prompt.size());
    done.n_tokens = text == "go on" ? context - done.n_prompt : 2;
    done.finish = text == "go on" ? Finish::length : Finish::end;
    done.tokens_s = 1;
    return done;
  }
  Json asked;
  Generation used;
  int64_t context = 1000;

 private:
  std::atomic<bool>& interrupted_;
};

class ChatTest : public testing::Test {
 protected:
  ChatTest()
      : out_file_(open_memstream(&out_, &out_size_)),
        notes_file_(open_memstream(&notes_, &notes_size_)) {}
  ~ChatTest() override {
    std::fclose(out_file_);
    std::fclose(notes_file_);
    std::free(out_);
    std::free(notes_);
  }
  int talk(std::deque<Line> lines) {
    Script script(std::move(lines));
    return chat_.talk(script);
  }
  std::string out() {
    std::fflush(out_file_);
    return {out_, out_size_};
  }
  bool noted(std::string_view part) {
    std::fflush(notes_file_);
    return std::string_view(notes_, notes_size_).find(part) != std::string_view::npos;
  }

  char *out_ = nullptr, *notes_ = nullptr;
  size_t out_size_ = 0, notes_size_ = 0;
  std::FILE *out_file_, *notes_file_;
  std::atomic<bool> interrupted_{false};
  Echo echo_{interrupted_};
  Chat chat_{echo_, interrupted_, {out_file_, notes_file_, true}};
};

TEST_F(ChatTest, AnswersAndRemembers) {
  EXPECT_EQ(talk({typed("hi"), typed(""), typed("  "), typed("again")}), 0);
  EXPECT_EQ(out(), "You said hi\nYou said again\n");
  ASSERT_EQ(echo_.asked.size(), 3u);
  EXPECT_EQ(echo_.asked[1]["content"], "You said hi");
}

TEST_F(ChatTest, TakesMessagesOfSeveralLines) {
  talk({typed("a\\"), typed("b\\"), typed("c"), typed("\"\"\"one"), typed(""), typed("two\"\"\""),
        typed("\"\"\"x\"\"\"")});
  EXPECT_EQ(chat_.messages()[0]["content"], "a\nb\nc");
  EXPECT_EQ(chat_.messages()[2]["content"], "one\n\ntwo");
  EXPECT_EQ(chat_.messages()[4]["content"], "x");
}

TEST_F(ChatTest, CtrlCStopsTheAnswerAndKeepsWhatWasSaid) {
  talk({typed("stop"), typed("more")});
  EXPECT_EQ(out(), "You said \nYou said more\n");
  EXPECT_TRUE(noted("(stopped)"));
  EXPECT_EQ(chat_.messages()[1]["content"], "You said ");
  EXPECT_EQ(chat_.messages().size(), 4u);
}

TEST_F(ChatTest, CtrlCTwiceAtThePromptLeaves) {
  talk({ctrl_c(), typed("hi"), ctrl_c(), ctrl_c(), typed("never")});
  EXPECT_EQ(out(), "You said hi\n");
  talk({typed("a\\"), ctrl_c(), typed("b")});
  EXPECT_EQ(chat_.messages().back()["content"], "You said b");
}

TEST_F(ChatTest, TypingDisarmsCtrlC) {
  talk({ctrl_c(), ctrl_c("half a line"), typed("hi"), typed("\"\"\""), ctrl_c(), ctrl_c(),
        typed("again"), ctrl_c("x"), ctrl_c("y"), ctrl_c(), kCtrlCAfterDeleting, typed("more"),
        ctrl_c(), ctrl_c(), typed("never")});
  EXPECT_EQ(out(), "You said hi\nYou said again\nYou said more\n");
  EXPECT_TRUE(noted("press Ctrl-C again to quit"));
}

TEST_F(ChatTest, AFullContextIsSaidWithWhatHelps) {
  echo_.context = 50;
  talk({typed("one"), typed("go on")});
  EXPECT_TRUE(noted("the context of 50 tokens is full, so the answer is cut off"));
  for (const char* part : {"/reset starts", "/drop makes room", "-c N"}) EXPECT_TRUE(noted(part));
  EXPECT_FALSE(noted("the conversation has"));
  talk({typed("more")});
  EXPECT_TRUE(noted("the conversation has 50 tokens"));
  EXPECT_EQ(out(), "You said one\nYou said go on\n");
  EXPECT_EQ(chat_.messages().size(), 4u);
  talk({typed("/reset"), typed("two")});
  EXPECT_TRUE(out().ends_with("You said two\n"));
}

TEST_F(ChatTest, ThroughAPipeNoCommandsAreOffered) {
  echo_.context = 30;
  EXPECT_EQ(chat_.answer_once("go on"), 0);
  EXPECT_TRUE(noted("millrace: the context of 30 tokens is full"));
  EXPECT_EQ(chat_.answer_once("more"), 1);
  EXPECT_TRUE(noted("-c N"));
  EXPECT_FALSE(noted("/reset"));
}

TEST_F(ChatTest, TheOldestTurnsMakeRoomWhereThatIsAskedFor) {
  echo_.context = 100;
  chat_.set_system("Be kind");
  // Ten messages with the system's: a quarter of the context is the answer's, so seven could stay,
  // which turns of two make six.
  talk({typed("1"), typed("2"), typed("3"), typed("4"), typed("/drop"), typed("5")});
  EXPECT_TRUE(noted("dropped the 2 oldest turns to stay inside the context of 100 tokens"));
  ASSERT_EQ(echo_.asked.size(), 6u);
  EXPECT_EQ(echo_.asked[0]["content"], "Be kind");
  EXPECT_EQ(echo_.asked[1]["content"], "3");
  EXPECT_EQ(echo_.asked[5]["content"], "5");
  EXPECT_EQ(chat_.messages().size(), 7u);
  talk({typed("/drop off"), typed("6"), typed("7")});
  EXPECT_TRUE(noted("the conversation has 100 tokens"));
}

TEST_F(ChatTest, AMessageTooLongForTheContextIsSaid) {
  echo_.context = 20;
  chat_.drop_oldest(true);
  chat_.set_system("Be kind");
  talk({typed("hi")});
  EXPECT_TRUE(noted("the message has 20 tokens"));
  EXPECT_FALSE(noted("dropped"));
}

TEST_F(ChatTest, AFailedAnswerLeavesNoTrace) {
  talk({typed("fail"), typed("hi")});
  EXPECT_TRUE(noted("no pages left"));
  EXPECT_EQ(chat_.messages().size(), 2u);
  EXPECT_EQ(chat_.answer_once("fail"), 1);
}

TEST_F(ChatTest, CommandsDoWhatTheySay) {
  talk({typed("/system Be kind"), typed("/set temperature 0.25"), typed("/set top_k 1.5"),
        typed("/set seed 18446744073709551615"), typed("/set seed 18446744073709551616"),
        typed("/set seed -1"), typed("/set nope 1"), typed("/set top_p"), typed("/nope"),
        typed("/help"), typed("hi"), typed("/stats")});
  EXPECT_EQ(echo_.asked[0]["content"], "Be kind");
  EXPECT_EQ(echo_.used.sampling.temperature, 0.25f);
  EXPECT_EQ(echo_.used.sampling.top_k, 40);
  EXPECT_EQ(echo_.used.sampling.seed, UINT64_MAX);
  for (const char* part :
       {"top_k takes a whole number from 0 to 1000000", "seed 18446744073709551615\n",
        "seed takes a whole number from 0 to 18446744073709551615", "no setting 'nope'",
        "top_p 0.95", "no command /nope", "/reset", "2.0 tokens/s"})
    EXPECT_TRUE(noted(part)) << part;
  talk({typed("/reset")});
  ASSERT_EQ(chat_.messages().size(), 1u);
  EXPECT_EQ(chat_.messages()[0]["role"], "system");
  talk({typed("/system"), typed("/exit"), typed("never")});
  EXPECT_TRUE(chat_.messages().empty());
}

TEST_F(ChatTest, AConversationIsSavedAndTakenUpAgain) {
  const std::string path = testing::TempDir() + "millrace_chat_" + std::to_string(getpid());
  talk({typed("hi"), typed("/save " + path), typed("/reset"), typed("/load " + path)});
  EXPECT_EQ(chat_.messages().size(), 2u);
  std::ofstream(path) << "[1, 2]";
  talk({typed("/load " + path), typed("/load /nowhere/at/all"), typed("/save /nowhere/at/all")});
  EXPECT_TRUE(noted("is not a conversation"));
  EXPECT_TRUE(noted("cannot write"));
  EXPECT_EQ(chat_.messages().size(), 2u);
  std::remove(path.c_str());
}

TEST_F(ChatTest, APipeIsAnsweredOnce) {
  EXPECT_EQ(chat_.answer_once("two\nlines"), 0);
  EXPECT_EQ(out(), "You said two\nlines\n");
  EXPECT_EQ(chat_.answer_once("\n"), 0);
  EXPECT_EQ(chat_.answer_once("stop"), 130);
}

TEST_F(ChatTest, AnswersCannotSteerTheTerminal) {
  talk({typed("\x1b[31mred\a")});
  EXPECT_EQ(out(), "You said [31mred\n");
}

TEST_F(ChatTest, AnswersWrapAtATerminalAlone) {
  const std::string words = "never gonna give you up";
  Chat narrow(echo_, interrupted_, {out_file_, notes_file_, true, 12});
  EXPECT_EQ(narrow.answer_once(words), 0);
  EXPECT_EQ(out(), "You said \nnever gonna \ngive you up\n");
  EXPECT_EQ(narrow.messages()[1]["content"], "You said " + words);
  Chat piped(echo_, interrupted_, {out_file_, notes_file_, false, 12});
  EXPECT_EQ(piped.answer_once(words), 0);
  EXPECT_TRUE(out().ends_with("You said " + words + "\n"));
}

}  // namespace
}  // namespace millrace::cli
