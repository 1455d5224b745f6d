// What a post is written from: the claims that its numbers may be, and the words around them. Words
// come from people and agents and are kept as they are; who writes a post makes them inert.
#pragma once

#include <string>
#include <vector>

#include "lab/notebook/notebook.h"
#include "lab/posts/claims_block.h"
#include "lab/posts/triage.h"

namespace millrace::lab {

// B against A, or one measurement alone (B is empty). Members are names of claims.
struct TopicRow {
  Subject subject;
  std::string label_a, label_b;
  std::string a, b;
  std::string change;   // empty: the samples do not decide it
  std::string share;    // of the floor; empty: there is none
  std::string outcome;  // of the prediction
};

struct Topic {
  NodeRef ref;
  std::string uid = {};
  std::string learned = {}, question = {}, reason = {}, scope = {}, outcome = {}, strength = {};
  std::string effect = {};      // "time falls", without its size
  std::string prediction = {};  // the claim of its size; empty: it has none
  std::string command = {}, machine = {}, device = {}, date = {};
  std::string samples = {};  // a claim
  std::vector<TopicRow> rows = {};
  size_t n_left_out = 0;  // rows that are too many for a post
  bool imported = false;
  std::string plot = {};
};

struct Material {
  ClaimsBlock block;
  std::vector<Topic> topics;
};

Result<Material> gather(Notebook& notebook, const std::vector<Candidate>& taken);

}  // namespace millrace::lab
