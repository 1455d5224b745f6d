#include <algorithm>
#include <nlohmann/json.hpp>

#include "lab/notebook/fixture_test.h"
#include "lab/posts/blog.h"
#include "lab/posts/html.h"
#include "lab/posts/number_scan.h"
#include "lab/posts/plot.h"
#include "lab/posts/scrub.h"
#include "lab/posts/text.h"

namespace millrace::lab {
namespace {

class PostsTest : public NotebookFixture {
 protected:
  // avx512 at 70 us against avx2 at 100, predicted to save a tenth: a learning.
  int64_t add_learning(Notebook& notebook, const std::string& text = "AVX-512 norms a row faster",
                       double us = 70, const std::string& question = "avx512 is faster") {
    Hypothesis h = hypothesis("-10%");
    h.text = question;
    const int64_t id = notebook.add(h).value();
    add_run(notebook, {metric("avx2", 100), metric("avx512", us)}, id);
    EXPECT_TRUE(notebook.give_verdict(id).ok());
    return notebook.learn(id, text).value();
  }

  Drafted draft(Notebook& notebook, const std::vector<NodeRef>& refs) {
    auto out =
        draft_post(notebook, machine, refs, {.date = "2026-11-18", .triage = {}, .write = {}});
    EXPECT_TRUE(out.ok()) << out.status().message();
    return *std::move(out);
  }

  LintReport lint_of(Notebook& notebook, const std::string& text, bool strict = false) {
    auto out = lint(text, notebook, machine, {.strict = strict});
    EXPECT_TRUE(out.ok()) << out.status().message();
    return *std::move(out);
  }

  static std::string all(const LintReport& report) {
    std::string out;
    for (const Finding& f : report.findings)
      out += fmt::format("{}{}: {}\n", f.is_error ? "" : "note ", f.line, f.what);
    return out;
  }

  std::string read(const std::string& name) {
    std::ifstream in(folder / "site" / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  // A post with one run of two measurements, `a` and `b`, and a body around the given text.
  std::string post_with(Notebook& notebook, int64_t run, const std::string& body,
                        const std::string& claims = "") {
    const RunSummary head = notebook.store().run(run).value();
    return fmt::format(
        "---\ntitle: \"A test\"\ndate: 2026-11-18\nexcerpt: \"Short.\"\n---\n{}\n<!-- claims\n"
        "run r = {} sha256 {}\na = time of r | rmsnorm | 1x576 | avx2 | cold\n"
        "b = time of r | rmsnorm | 1x576 | avx512 | cold\n{}-->\n",
        body, head.uid.substr(0, 16), head.digest.substr(0, 16), claims);
  }
};

TEST_F(PostsTest, ADraftPassesItsLinterAndIsPublished) {
  Notebook notebook = open();
  const int64_t learned = add_learning(notebook);
  const Drafted drafted = draft(notebook, {});
  ASSERT_GT(drafted.post, 0) << drafted.candidates[0].why;
  EXPECT_TRUE(drafted.report.ok()) << all(drafted.report) << drafted.text;
  EXPECT_GE(drafted.report.n_numbers, 5);
  EXPECT_NE(drafted.text.find("70.0 us<!--=avx512-->"), std::string::npos) << drafted.text;
  EXPECT_NE(drafted.text.find("-30 %<!--=change-->"), std::string::npos) << drafted.text;
  EXPECT_NE(drafted.text.find("10 %<!--=predicted-->"), std::string::npos) << drafted.text;

  const auto published =
      publish_post(notebook, machine, drafted.post, folder / "site", {.title = "Lab", .url = ""});
  ASSERT_TRUE(published.ok()) << published.status().message();
  EXPECT_TRUE(published.value().report.ok()) << all(published.value().report);
  EXPECT_EQ(notebook.post(drafted.post).value().state, "published");
  EXPECT_FALSE(notebook.claims_of(drafted.post).value().empty());
  const std::string page = read("posts/avx-512-norms-a-row-faster.html");
  EXPECT_NE(page.find("70.0 us"), std::string::npos) << page;
  EXPECT_EQ(page.find("claims"), std::string::npos) << "the block is not shown";
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(read("feed.xml").find("<entry>"), std::string::npos);
  const auto feed = nlohmann::json::parse(read("feed.json"), nullptr, false);
  ASSERT_TRUE(feed.is_object());
  EXPECT_EQ(feed["items"].size(), 1u);
  EXPECT_NE(read("_posts/2026-11-18-avx-512-norms-a-row-faster.md").find("published: true"),
            std::string::npos);
  EXPECT_NE(read("posts/avx-512-norms-a-row-faster-plot1.svg").find("</svg>"), std::string::npos);

  // It is told, so no second post is drafted by itself.
  EXPECT_EQ(draft(notebook, {}).post, 0);
  const auto again = draft_post(notebook, machine, {{"learn", learned}},
                                {.date = "2026-11-18", .triage = {}, .write = {}});
  EXPECT_FALSE(again.ok()) << "what is published is not written over";
  EXPECT_NE(again.status().message().find("post:1 is published"), std::string::npos);
}

TEST_F(PostsTest, OneChangedSampleFailsTheLinter) {
  Notebook notebook = open();
  add_learning(notebook);
  const Drafted drafted = draft(notebook, {});
  ASSERT_TRUE(drafted.report.ok()) << all(drafted.report);
  EXPECT_NE(sql("UPDATE samples SET value = 1 WHERE metric_id = 1 AND round = 0"), "");
  EXPECT_EQ(sql("DROP TRIGGER samples_stay;"
                "UPDATE samples SET value = value * 1.001 WHERE metric_id = 1 AND twin = 0 AND "
                "round = 0"),
            "");
  const LintReport report = lint_of(notebook, drafted.text);
  EXPECT_FALSE(report.ok());
  const std::string uid = notebook.store().run(1).value().uid.substr(0, 16);
  EXPECT_NE(all(report).find(uid), std::string::npos) << all(report);
  const auto published =
      publish_post(notebook, machine, drafted.post, folder / "site", {.title = "", .url = ""});
  ASSERT_TRUE(published.ok());
  EXPECT_FALSE(published.value().report.ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "site" / "index.html"));
}

TEST_F(PostsTest, ARunThatWasReplacedOrDeletedIsNamed) {
  Notebook notebook = open();
  add_learning(notebook);
  const Drafted drafted = draft(notebook, {});
  const std::string uid = notebook.store().run(1).value().uid.substr(0, 16);
  std::string other = drafted.text;
  const std::string digest = notebook.store().run(1).value().digest.substr(0, 16);
  other.replace(other.find(digest), 16, "0123456789abcdef");
  EXPECT_NE(all(lint_of(notebook, other)).find("the post was written about 0123456789abcdef"),
            std::string::npos);
  sql("DROP TRIGGER runs_remain; DELETE FROM runs WHERE id = 1");
  const std::string found = all(lint_of(notebook, drafted.text));
  EXPECT_NE(found.find(uid), std::string::npos) << found;
  EXPECT_NE(found.find("the evidence was deleted"), std::string::npos) << found;
}

TEST_F(PostsTest, NumbersThatNoClaimBacksAreErrors) {
  Notebook notebook = open();
  const int64_t run = add_run(notebook, {metric("avx2", 100), metric("avx512", 70)});
  for (const char* text :
       {"It is 3 us.", "Faster by 1.5x.", "| 12 |", "`3.5x` faster", "```\nspeed 99\n```",
        "three times as fast", "twice as fast", "a speedup of \xC2\xBD", "\xEF\xBC\x95 percent",
        "&#51; us", "70 us", "Saves ten percent.", "![5 bars](x.svg)", "[7](x.md)", "tenfold",
        "70 us<!--=none-->", "71 us<!--=b-->", "-70 us<!--=b-->", "170 us<!--=b-->",
        "1.70 us<!--=b-->", "70 ms<!--=b-->", "{{b}}", "{% include x %}", "x<!-- 5 -->", "run:12",
        "v2.5 of it", "faster-3", "2026-13-40", "a hundred times as fast", "three hundred times",
        "five milliseconds", "It doubled.", "a third of it", "Faster-3",
        "![a picture](https://example.org/x.png)", "70.0 us<!--=b-->e3", "70.0 us<!--=b-->,5",
        "70.0 us<!--=b--> thousand",
        // After a name or a month, before a unit.
        "In March 9000 tokens per second were reached.", "We may save: May 5000 us.",
        "In March 2026 tokens were counted.", "On CUDA 900 tokens per second", "over PCIe 999 GB/s",
        "on Zen 40 times faster", "AVX2 times faster",
        // A line of a paragraph is no item of a list.
        "It is faster (by\n40) than before.", "faster by a factor of\n40. Nothing else changed.",
        "40) faster\n---\ntext", "1. Faster by\n40. Nothing",
        // Words.
        "seventeen times as fast", "saves nineteen percent", "half the time", "double the speed",
        "triple the throughput", "saves fifty per cent of it", "ninety-nine pct", "one percent",
        "a fifth of it", "a fifth\nof it", "two thirds", "an order of magnitude faster",
        "a hundredth of the time", "quadrupled", "It takes two minutes.", "at three gigahertz",
        "XL times faster",
        // Digits of other scripts, and digits in what looks like a name.
        "\u0be9\u0be6 rows", "\u4e09\u5341\u500d", "\u24f5 rows", "\U0001f102 rows", "by9000",
        "By9000", "SPEED-900", "upto900x faster", "about_9x_faster", "l00x faster", "`by9000`",
        "`SPEED-900`"})
    EXPECT_FALSE(lint_of(notebook, post_with(notebook, run, text)).ok()) << text;
  for (const char* text : {"It is 70.0 us<!--=b-->.",
                           "**70.0 us<!--=b-->**, not 100.0 us<!--=a-->",
                           "AVX2 and AVX-512",
                           "int8, bf16 and Q8_0 on an H200",
                           "On 18 November 2026.",
                           "2026-11-18",
                           "## 2. How",
                           "[more](https://example.org/x)",
                           "1. First\n2. Second",
                           "`1x576` and `avx512`",
                           "```\nbench\n```",
                           "x86-64 and Zen 4",
                           "in C++20",
                           "[notes](../0008-the-notebook.md)",
                           "a &lt; b &amp; c",
                           "Intro.\n\n1. First\n   goes on\n2. Second\n\n3. Third",
                           "the third row and a ninth client",
                           "double precision, half-open",
                           "eight rows, two lanes",
                           "since November 2026, on SmolLM2 and an MI300X",
                           "in four bits",
                           "some times, at times",
                           "sixteen of them in L2"})
    EXPECT_TRUE(lint_of(notebook, post_with(notebook, run, text)).ok())
        << text << "\n"
        << all(lint_of(notebook, post_with(notebook, run, text)));
}

// A count is true of what it counts; with a unit behind it, it is another number.
TEST_F(PostsTest, WhatStandsBehindANumberMayNotTurnIt) {
  Notebook notebook = open();
  const int64_t run = add_run(notebook, {metric("avx2", 100), metric("avx512", 70)});
  const auto with = [&](const std::string& behind) {
    return lint_of(notebook,
                   post_with(notebook, run, "20<!--=n-->" + behind, "n = samples of a\n"));
  };
  for (const char* behind : {"x faster",
                             " % less",
                             "% less",
                             " times as fast",
                             "-fold",
                             " percent",
                             " us",
                             " million",
                             "k",
                             "** times",
                             " \xC3\x97",
                             "th of it",
                             "/3",
                             "\ntimes as fast",
                             "\n% less",
                             " \\% less",
                             "`x` faster",
                             " `%`",
                             " W",
                             " watts",
                             " minutes",
                             " GHz",
                             " GiB/s",
                             " joules",
                             " cycles",
                             " tokens per second",
                             " tokens/s",
                             " rows per second",
                             " rows a second",
                             " to one",
                             " orders of it",
                             "\u00a0times",
                             "-times",
                             " per cent"})
    EXPECT_FALSE(with(behind).ok()) << behind;
  for (const char* before : {"a factor of ", "faster by a factor of\n", "\u00d7", "\u2013"})
    EXPECT_FALSE(lint_of(notebook, post_with(notebook, run, before + std::string("20<!--=n-->."),
                                             "n = samples of a\n"))
                     .ok())
        << before;
  for (const char* behind :
       {" samples", ".", ", and more", "", " tokens", " | x |", "-bit", " rounds of it", ") or so",
        ": more", "\nsamples", " tokens of text", " per case", " to two"})
    EXPECT_TRUE(with(behind).ok()) << behind << all(with(behind));
}

TEST_F(PostsTest, TheFrontMatterIsHeldToTheSame) {
  Notebook notebook = open();
  const int64_t run = add_run(notebook, {metric("avx2", 100), metric("avx512", 70)});
  const auto with_title = [&](const std::string& title) {
    std::string out = post_with(notebook, run, "Text.", "less = drop a -> b\n");
    out.replace(out.find("\"A test\""), 8, title);
    return lint_of(notebook, out);
  };
  EXPECT_TRUE(with_title("\"It saves 30 %\"  # =less").ok());
  EXPECT_FALSE(with_title("\"It saves 30 %\"").ok());
  EXPECT_FALSE(with_title("\"It saves 31 %\"  # =less").ok());
  EXPECT_FALSE(with_title("\"It saves 30 % times two\"  # =less").ok());
  EXPECT_FALSE(with_title("\"<script>alert\"").ok());
  EXPECT_FALSE(with_title("\"a\"\npermalink: /x").ok());
  EXPECT_FALSE(with_title("\"a\"\ntitle: \"b\"").ok());
  EXPECT_FALSE(with_title("!!python/object").ok());
  EXPECT_FALSE(with_title("\"a").ok());
}

TEST_F(PostsTest, ArithmeticIsChecked) {
  Notebook notebook = open();
  Metric rate = metric("rate", 5);
  rate.name = "tokens_per_s";
  rate.unit = "tok/s";
  const int64_t run = add_run(notebook, {metric("avx2", 100), metric("avx512", 70),
                                         metric("avx512", 70.05, "other"), rate});
  const auto with = [&](const std::string& claims, const std::string& body = "Text.") {
    return all(lint_of(notebook, post_with(notebook, run, body, claims)));
  };
  EXPECT_EQ(with("r2 = ratio a / b\n", "1.43x<!--=r2-->"), "");
  EXPECT_EQ(with("up = change b -> a\n", "+43 %<!--=up-->"), "");
  EXPECT_EQ(with("s = sum a + b\nd = difference a - b\np = share b / s\n",
                 "170 us<!--=s--> is 30.0 us<!--=d--> more; 41 %<!--=p-->"),
            "");
  EXPECT_EQ(with("r2 = ratio a / b\n", "a factor of 1.43x<!--=r2-->"), "");
  EXPECT_NE(with("w = rise a -> b\n").find("it is a drop"), std::string::npos);
  EXPECT_NE(with("s = share a / b\n").find("more than the whole"), std::string::npos);
  EXPECT_NE(with("s = share b / a\nc = time of r | rmsnorm | other | avx512\nt = share c / a\n")
                .find("come to 140 %"),
            std::string::npos);
  EXPECT_NE(
      with("t = tokens_per_s of r | rmsnorm | 1x576 | rate\nx = ratio a / t\n").find("in 'tok/s'"),
      std::string::npos);
  EXPECT_NE(with("c = time of r | rmsnorm | * | avx512 | cold\n").find("2 measurements"),
            std::string::npos);
  EXPECT_NE(with("c = heads of a\n").find("no fact 'heads'"), std::string::npos);
  EXPECT_NE(with("c = ratio a / z\n").find("no claim is called z"), std::string::npos);
  EXPECT_NE(with("a = sum a + b\n").find("used twice"), std::string::npos);
  EXPECT_EQ(with("n = samples of a\nl = lanes of a\n", "20<!--=n--> samples on 2<!--=l--> lanes"),
            "");
}

// By no detour: sums, facts and shares carry the machines of what they are made of.
TEST_F(PostsTest, MachinesAndStatisticsAreNotMixed) {
  Notebook notebook = open();
  const int64_t run = add_run(notebook, {metric("avx2", 100), metric("avx512", 70)});
  machine.cpu_name = "another CPU";
  const RunSummary there = notebook.store().run(add_run(notebook, {metric("avx2", 10)})).value();
  const auto with = [&](const std::string& claims) {
    const std::string other =
        fmt::format("run there = {} sha256 {}\nc = time of there | rmsnorm | 1x576 | avx2 | cold\n",
                    there.uid.substr(0, 16), there.digest.substr(0, 16));
    return all(lint_of(notebook, post_with(notebook, run, "Text.", other + claims)));
  };
  for (const char* claims : {"x = ratio c / a\n", "x = share c / a\n", "x = difference a - c\n",
                             "s = sum a + b\nx = ratio s / c\n",
                             "f = bandwidth of a\ng = bandwidth of c\nx = ratio f / g\n"})
    EXPECT_NE(with(claims).find("different machines"), std::string::npos) << claims << with(claims);
  EXPECT_NE(with("l = time of r | rmsnorm | 1x576 | avx512 | cold | best\nx = ratio a / l\n")
                .find("is the median and the other is not"),
            std::string::npos);
}

// Top-k over a product says nothing, unless somebody means it.
TEST_F(PostsTest, OneOpIsHeldAgainstAnotherOnlyWhereTheBlockSaysSo) {
  Notebook notebook = open();
  Metric other = metric("avx2", 40);
  other.subject.name = "rope";
  const int64_t run = add_run(notebook, {metric("avx2", 100), metric("avx512", 70), other});
  const auto with = [&](const std::string& claims) {
    return all(
        lint_of(notebook, post_with(notebook, run, "Text.",
                                    "c = time of r | rope | 1x576 | avx2 | cold\n" + claims)));
  };
  for (const char* claim : {"x = ratio a / c\n", "x = share c / a\n", "x = change a -> c\n",
                            "s = sum a + b\nx = ratio s / c\n"})
    EXPECT_NE(with(claim).find("across ops"), std::string::npos) << claim << with(claim);
  for (const char* claim :
       {"x = ratio a / c | across ops\n", "x = ratio a / b\n", "s = sum a + c\nx = share c / s\n"})
    EXPECT_EQ(with(claim), "") << claim;
  const std::string line = "x = ratio a / c | across ops\n";
  const ClaimsBlock block = parse_claims(
                                "run r = 0123456789abcdef sha256 0123456789abcdef\n"
                                "a = time of r | o | p | v | m\n"
                                "c = time of r | q | p | v | m\n" +
                                    line,
                                1)
                                .value();
  EXPECT_NE(to_text(block).find(line), std::string::npos) << to_text(block);
}

TEST_F(PostsTest, AmbiguousAndStaleEvidenceIsNotPublished) {
  Notebook notebook = open();
  Metric noisy = metric("avx512", 99);
  for (size_t i = 0; i < noisy.samples.size(); ++i) noisy.samples[i] = i % 2 == 0 ? 80 : 125;
  const int64_t run = add_run(notebook, {metric("avx2", 100), noisy});
  const std::string text = post_with(notebook, run, "Text.", "c = change a -> b\n");
  EXPECT_NE(all(lint_of(notebook, text)).find("ambiguous"), std::string::npos);

  Machine other = machine;
  other.cpu_name = "another CPU";
  const std::string plain = post_with(notebook, run, "Text.");
  const auto loose = lint(plain, notebook, other, {}).value();
  EXPECT_TRUE(loose.ok()) << all(loose);
  EXPECT_TRUE(loose.is_stale());
  EXPECT_FALSE(lint(plain, notebook, other, {.strict = true}).value().ok());
}

// Not by saying of itself that it was published, nor under the name of a post that was.
TEST_F(PostsTest, StaleEvidenceIsNotPublishedByTheWordOfThePost) {
  Notebook notebook = open();
  const int64_t old = add_run(notebook, {metric("avx2", 100), metric("avx512", 70)});
  machine.cpu_name = "another CPU";
  const auto with = [&](int64_t run, const std::string& front) {
    std::string text = post_with(notebook, run, "It takes {{b}}.");
    text.replace(text.find("excerpt"), 0, front);
    return fill_numbers(text, notebook, machine).value();
  };
  const auto publish = [&](const std::string& text, bool is_rebuilt = false) {
    return publish_text(notebook, machine, text, folder / "site",
                        {.title = "", .url = "", .is_rebuilt = is_rebuilt})
        .value();
  };
  for (const char* front : {"", "published: true\n", "retracted: \"x\"\n"})
    EXPECT_FALSE(publish(with(old, front)).report.ok()) << front;
  EXPECT_FALSE(std::filesystem::exists(folder / "site" / "index.html"));

  const int64_t fresh = add_run(notebook, {metric("avx2", 100), metric("avx512", 70)});
  const Published first = publish(with(fresh, ""));
  EXPECT_TRUE(first.report.ok());
  EXPECT_FALSE(publish(with(old, "")).report.ok());
  machine.cpu_name = "a third CPU";  // what was fresh then stays, and says so
  const Published again = publish(with(fresh, ""));
  EXPECT_TRUE(again.report.ok());
  EXPECT_EQ(again.post, first.post);
  EXPECT_NE(read("posts/a-test.html").find("out of date"), std::string::npos);
  // A blog that is made again from its files and exported runs has no other memory.
  EXPECT_FALSE(publish(with(old, ""), true).report.ok());
  EXPECT_TRUE(publish(with(old, "published: true\n"), true).report.ok());
}

// Under the title of a published post, too.
TEST_F(PostsTest, ATextThatIsRefusedLeavesNoTrace) {
  Notebook notebook = open();
  const int64_t run = add_run(notebook, {metric("avx2", 100), metric("avx512", 70)});
  const std::string good = post_with(notebook, run, "It takes 70.0 us<!--=b-->.");
  const std::string bad = post_with(notebook, run, "It is 900x faster.");
  const auto publish = [&](const std::string& text, const std::string& to) {
    return publish_text(notebook, machine, text, folder / to, {});
  };
  EXPECT_FALSE(publish(bad, "site").value().report.ok());
  EXPECT_TRUE(notebook.posts(0, 10).value().empty());
  ASSERT_TRUE(publish(good, "site").value().report.ok());
  const Post before = notebook.post(1).value();
  EXPECT_EQ(before.state, "published");
  const auto n_events = notebook.events(0, 1000).value().size();
  EXPECT_FALSE(publish(bad, "site").value().report.ok());
  std::ofstream(folder / "file") << "no folder";
  EXPECT_FALSE(publish(post_with(notebook, run, "Another text."), "file").ok());
  EXPECT_EQ(notebook.post(1).value().body, before.body);
  EXPECT_EQ(notebook.post(1).value().state, "published");
  EXPECT_EQ(notebook.events(0, 1000).value().size(), n_events);
  EXPECT_EQ(read("posts/a-test.html").find("900x"), std::string::npos);
}

// What somebody else's notebook calls published is computed again before it is shown here, and no
// part of it names a file outside the site.
TEST_F(PostsTest, ImportedPostsAreHeldToTheirRunsToo) {
  std::string jsonl;
  {
    Notebook notebook = open();
    const int64_t run = add_run(notebook, {metric("avx2", 100), metric("avx512", 70)});
    const auto add = [&](const std::string& slug, const std::string& text) {
      Post post;
      post.slug = slug;
      post.title = slug;
      post.body = text;
      const int64_t id = notebook.add(post).value();
      ASSERT_TRUE(notebook.set_post_state(id, "published").ok());
    };
    add("good", post_with(notebook, run, "It takes 70.0 us<!--=b-->."));
    add("wrong", post_with(notebook, run, "It takes 7.0 us<!--=b-->."));
    std::string outside = post_with(notebook, run, "Text.");
    outside.replace(outside.find("2026-11-18"), 10, "\"../../../outside\"");
    add("outside", outside);
    outside.replace(outside.find("excerpt"), 0, "retracted: \"x\"\n");
    add("retracted", outside);
    jsonl = exported(notebook);
  }
  Notebook other = Notebook::open(folder / "other.db").value();
  ASSERT_TRUE(import_text(other, jsonl).ok());
  const int64_t run = add_run(other, {metric("avx2", 100), metric("avx512", 70)});
  const auto published =
      publish_text(other, machine, post_with(other, run, "Text."), folder / "site" / "deep", {});
  ASSERT_TRUE(published.ok()) << published.status().message();
  EXPECT_EQ(published.value().left_out.size(), 3u);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    EXPECT_EQ(entry.path().string().find("outside"), std::string::npos) << entry.path();
  EXPECT_TRUE(std::filesystem::exists(folder / "site/deep/posts/good.html"));
  EXPECT_FALSE(std::filesystem::exists(folder / "site/deep/posts/wrong.html"));
}

TEST_F(PostsTest, ImportedEvidenceIsMarked) {
  std::string text, jsonl;
  {
    Notebook notebook = open();
    add_learning(notebook);
    text = draft(notebook, {}).text;
    jsonl = exported(notebook);
  }
  Notebook other = Notebook::open(folder / "other.db").value();
  ASSERT_TRUE(import_text(other, jsonl).ok());
  const LintReport report = lint_of(other, text, true);
  EXPECT_TRUE(report.ok()) << all(report);
  EXPECT_TRUE(report.is_imported());
  const auto published =
      publish_text(other, machine, text, folder / "site", {.title = "", .url = ""});
  ASSERT_TRUE(published.ok()) << published.status().message();
  EXPECT_NE(read("posts/avx-512-norms-a-row-faster.html").find("was imported"), std::string::npos);
}

TEST_F(PostsTest, HostileTextComesOutInert) {
  const std::string hostile =
      "x</h1><script>alert(1)</script>\n---\nlayout: evil\n---\n![p](javascript:1) "
      "[l](http://evil) "
      "{{ site.x }} {% raw %} `c` | a | **b** <!-- claims\nrun z = 1 --> \xE2\x80\xAE"
      "desrever\x1b[31m \x7f sk-abcdefghijklmnopqrstuv /home/alice/x 5 times";
  Notebook notebook = open();
  add_learning(notebook, hostile, 70, hostile);
  const Drafted drafted = draft(notebook, {});
  ASSERT_GT(drafted.post, 0);
  EXPECT_TRUE(drafted.report.ok()) << all(drafted.report) << drafted.text;
  for (const char* bad : {"<script", "\x1b", "\xE2\x80\xAE", "\nlayout: evil", "](javascript",
                          "](http", "{%", "{{", "sk-abc", "/home/alice"})
    EXPECT_EQ(drafted.text.find(bad), std::string::npos) << bad << "\n" << drafted.text;
  const auto published =
      publish_post(notebook, machine, drafted.post, folder / "site", {.title = "<b>", .url = ""});
  ASSERT_TRUE(published.ok()) << published.status().message();
  ASSERT_TRUE(published.value().report.ok()) << all(published.value().report);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "site")) {
    if (!entry.is_regular_file() || entry.path().extension() == ".json") continue;  // data there
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    for (const char* bad : {"<script", "<b>", "javascript:1)", "href=\"http://evil"})
      EXPECT_EQ(text.find(bad), std::string::npos) << entry.path() << ": " << bad;
  }
}

TEST_F(PostsTest, ARetractedPostStaysAndLeavesTheFeeds) {
  Notebook notebook = open();
  add_learning(notebook);
  const Drafted drafted = draft(notebook, {});
  EXPECT_FALSE(retract_post(notebook, machine, drafted.post, "wrong", "", {}).ok()) << "a draft";
  ASSERT_TRUE(publish_post(notebook, machine, drafted.post, folder / "site", {}).ok());
  // Also when the evidence is what went wrong.
  sql("DROP TRIGGER runs_remain; DELETE FROM runs WHERE id = 1");
  const Status status = retract_post(notebook, machine, drafted.post, "The clock <i>was</i> wrong.",
                                     folder / "site", {});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_NE(read("posts/avx-512-norms-a-row-faster.html").find("Retracted: The clock"),
            std::string::npos);
  EXPECT_NE(read("index.html").find("(retracted)"), std::string::npos);
  EXPECT_EQ(read("feed.xml").find("<entry>"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(read("feed.json"))["items"].empty());
  EXPECT_EQ(notebook.post(drafted.post).value().state, "retracted");
}

TEST_F(PostsTest, TriageSaysWhy) {
  Notebook notebook = open();
  add_learning(notebook, "small and as predicted", 70);
  add_learning(notebook, "refuted", 99);
  add_learning(notebook, "undecided", 90);
  const auto found = triage(notebook, machine, {}).value();
  ASSERT_EQ(found.size(), 3u);
  const auto of = [&](const std::string& text) {
    return *std::find_if(found.begin(), found.end(),
                         [&](const Candidate& c) { return c.text == text; });
  };
  EXPECT_TRUE(of("refuted").taken) << "negative results are welcome: " << of("refuted").why;
  EXPECT_TRUE(of("small and as predicted").taken);
  EXPECT_FALSE(of("undecided").taken);
  EXPECT_NE(of("undecided").why.find("undecided"), std::string::npos);
  Machine other = machine;
  other.cpu_name = "another CPU";
  const auto elsewhere = triage(notebook, other, {}).value();
  for (const Candidate& c : elsewhere) EXPECT_FALSE(c.taken) << c.why;
}

// Two runs refute it on one case and the newest supports it on another: no post says that it held.
TEST_F(PostsTest, WhatRunsContradictIsNotTold) {
  Notebook notebook = open();
  const int64_t h = notebook.add(hypothesis("-10%")).value();
  for (int i = 0; i < 2; ++i)
    add_run(notebook, {metric("avx2", 100, "1x576"), metric("avx512", 100, "1x576")}, h);
  add_run(notebook, {metric("avx2", 100, "8x576"), metric("avx512", 70, "8x576")}, h);
  ASSERT_TRUE(notebook.give_verdict(h).ok());
  const int64_t learned = notebook.learn(h, "AVX-512 is faster, always").value();
  for (const NodeRef& ref : {NodeRef{"learn", learned}, NodeRef{"hyp", h}}) {
    const Drafted drafted = draft(notebook, {ref});
    EXPECT_EQ(drafted.post, 0) << drafted.text;
    EXPECT_NE(drafted.candidates[0].why.find("contradict"), std::string::npos);
  }
  EXPECT_EQ(draft(notebook, {}).post, 0);
}

TEST_F(PostsTest, ADraftTellsOfRunsThatWereInterrupted) {
  Notebook notebook = open();
  add_learning(notebook);
  add_run(notebook, {metric("avx2", 100), metric("avx512", 100)}, 1, "candidate", "interrupted");
  const Drafted drafted = draft(notebook, {});
  EXPECT_NE(drafted.text.find("Strength: one run; other runs of it were interrupted or failed."),
            std::string::npos)
      << drafted.text;
  EXPECT_TRUE(drafted.report.ok()) << all(drafted.report);
}

// What is learned from one case names it, and the post says of which.
TEST_F(PostsTest, TheScopeOfADraftNamesTheCases) {
  Notebook notebook = open();
  add_learning(notebook);
  const Drafted drafted = draft(notebook, {});
  EXPECT_NE(drafted.text.find("case `1x576`. Strength: one run."), std::string::npos)
      << drafted.text;
  EXPECT_TRUE(drafted.report.ok()) << all(drafted.report);
}

TEST_F(PostsTest, FixFillsInAndBringsUpToDate) {
  Notebook notebook = open();
  const int64_t run = add_run(notebook, {metric("avx2", 100), metric("avx512", 70)});
  std::string text = post_with(notebook, run, "It takes {{b}}, 5 us<!--=a--> before; {{no}}.",
                               "less = drop a -> b\n");
  text.replace(text.find("A test"), 6, "Saves {{less}}");
  const std::string filled = fill_numbers(text, notebook, machine).value();
  EXPECT_NE(filled.find("It takes 70.0 us<!--=b-->, 100.0 us<!--=a--> before; {{no}}"),
            std::string::npos)
      << filled;
  EXPECT_NE(filled.find("title: \"Saves 30 %\"  # =less"), std::string::npos) << filled;
  EXPECT_EQ(fill_numbers(filled, notebook, machine).value(), filled);
}

// A README has numbers of many origins; those that name a run are held to it.
TEST_F(PostsTest, OfATextThatIsNoPostTheBoundNumbersAreChecked) {
  Notebook notebook = open();
  const int64_t run = add_run(notebook, {metric("avx2", 100), metric("avx512", 0.0026)});
  const std::string post = post_with(notebook, run, "");
  const std::string block = post.substr(post.find("<!-- claims"));
  const auto problems = [&](const std::string& text) {
    return all(lint(text, notebook, machine, {.only_bound = true}).value());
  };
  const std::string good = "# Title\n\n<b>5</b> of 7, 2.60e-03 us<!--=b-->.\n\n" + block;
  EXPECT_EQ(problems(good), "");
  EXPECT_NE(problems("# Title\n\n5 of 7.\n\n" + block).find("no number is bound"),
            std::string::npos);
  EXPECT_NE(problems("# Title\n\n5 of 7.\n").find("no claims block"), std::string::npos);
  EXPECT_NE(problems("2.61e-03 us<!--=b-->\n\n" + block).find("the text says"), std::string::npos);
  EXPECT_NE(problems("\xff").find("UTF-8"), std::string::npos);
  std::string old = good;
  old.replace(old.find("2.60e-03"), 8, "1.11e-02");
  EXPECT_EQ(fill_numbers(old, notebook, machine, true).value(), good);
}

TEST_F(PostsTest, ShareCloseToAllOfItKeepsItsDigit) {
  EXPECT_EQ(number_text(97.74, "%"), "97.7 %");
  EXPECT_EQ(number_text(94.3, "%"), "94 %");
  EXPECT_EQ(number_text(9.3, "%"), "9.3 %");
}

TEST_F(PostsTest, PlotsAreDrawnFromTheSamplesAndNothingElse) {
  Notebook notebook = open();
  const int64_t run =
      add_run(notebook, {metric("avx2", 100, "4_1x576"), metric("avx2", 180, "4_2x576"),
                         metric("avx2", 190, "4_3x576")});
  const RunSummary head = notebook.store().run(run).value();
  const std::string block = fmt::format(
      "run r = {} sha256 {}\na = time of r | rmsnorm | 4_1x576 | avx2\n"
      "b = time of r | rmsnorm | 4_2x576 | avx2\nplot p = bars a b\n"
      "plot c = curve of r | time | rmsnorm | 4_*x576 | avx2 | cold\n",
      head.uid, head.digest);
  const auto draw = [&] {
    std::vector<std::string> out;
    const auto claims = Claims::of(parse_claims(block, 1).value(), notebook, machine).value();
    for (const PlotLine& plot : claims.block().plots)
      out.push_back(draw_plot(plot, claims).value());
    return out;
  };
  const auto first = draw();
  EXPECT_EQ(first, draw());
  EXPECT_EQ(std::count(first[0].begin(), first[0].end(), '\n') > 40, true) << "every sample a dot";
  EXPECT_NE(first[1].find("<path d=\"M"), std::string::npos);
}

TEST_F(PostsTest, BrokenBlocksAndDocumentsAreErrors) {
  Notebook notebook = open();
  for (const char* text : {"", "no front matter", "---\n", "---\ntitle: \"x\"\n", "---\nx\n---\n",
                           "\xff\xfe", "---\ntitle: \"x\"\n---\nno claims block\n",
                           "---\ntitle: \"x\"\n---\n<!-- claims\nrun a = b\n-->\n",
                           "---\ntitle: \"x\"\n---\n<!-- claims\n", "---\ntitle: [\"x\"\n---\n",
                           "---\ntitle: \"x\"\n---\n<!-- claims\n-->\n<!-- claims\n-->\n",
                           "---\ntitle: \"x\"\n---\n```\n", "---\ntitle: \"x\"\n---\n`"})
    EXPECT_FALSE(lint_of(notebook, text).ok()) << text;
}

TEST(PostTextTest, PrivatePartsAreFound) {
  for (const char* text : {"ghp_0123456789abcdefghij", "token: abcdefgh", "password=x",
                           "/home/alice/models", "see ~/x", "build@box.example.org", "10.1.2.3",
                           "gpu7.internal", "-----BEGIN PRIVATE KEY-----", "Bearer abcdefghijkl",
                           "--db=/tmp/x.db", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE"})
    EXPECT_FALSE(find_private(text).empty()) << text;
  for (const char* text :
       {"millrace bench rmsnorm --compare avx2 avx512", "a/b ratio", "src/kernels/matmul/README.md",
        "tokens per second", "127.0.0.1", "time of r | matmul", "AVX-512 VNNI 1.2.3",
        "bench/dev is /usr/bin/true"})
    EXPECT_TRUE(find_private(text).empty()) << text << ": " << find_private(text)[0].what;
  EXPECT_EQ(scrubbed("run --db /home/a/b.db now"), "run --db [removed] now");
}

TEST(PostTextTest, MarkdownBecomesHtml) {
  EXPECT_EQ(html_of("# A\n\nb *c* **d** `e<` [f](g.md)<!--=x-->\n"),
            "<h2>A</h2>\n<p>b <em>c</em> <strong>d</strong> <code>e&lt;</code> "
            "<a href=\"g.md\">f</a></p>\n");
  EXPECT_EQ(html_of("- a\n- b\n  c\n\n| h |\n|---|\n| 1 |\n"),
            "<ul>\n<li>a</li>\n<li>b c</li>\n</ul>\n<table>\n<tr><th>h</th></tr>\n"
            "<tr><td>1</td></tr>\n</table>\n");
  EXPECT_EQ(html_of("<b>x</b> [y](javascript:z) &lt; \\*"),
            "<p>&lt;b&gt;x&lt;/b&gt; [y](javascript:z) &lt; *</p>\n");
  EXPECT_EQ(html_of("```\n<i>\n```\n`a`\n`b`"),
            "<pre><code>&lt;i&gt;\n</code></pre>\n<p><code>a</code>\n<code>b</code></p>\n");
}

}  // namespace
}  // namespace millrace::lab
