// Posts by a model: any server that speaks OpenAI's chat completions, Millrace's own included. The
// model is told what there is to tell and places numbers by naming a claim, {{NAME}}; a digit of
// its own is one that the linter refuses. What it returns is a draft like any other.
#pragma once

#include <string>
#include <vector>

#include "lab/posts/claims.h"
#include "lab/posts/document.h"
#include "lab/posts/material.h"
#include "lab/posts/triage.h"

namespace millrace::lab {

struct ModelServer {
  std::string url;    // of the API: http://127.0.0.1:8080/v1
  std::string model;  // empty: the server's own choice
  std::string key;
};

// One answer to one question.
Result<std::string> ask(const ModelServer& server, const std::string& system,
                        const std::string& question);

// Of those that were taken, the ones the model wants to tell; why, in its words.
Status triage_by_model(const ModelServer& server, std::vector<Candidate>& candidates);

// `problems`: what the linter found in an earlier answer; empty at first.
Result<Document> write_by_model(const ModelServer& server, const Material& material,
                                const Claims& claims, const std::string& date,
                                const std::vector<std::string>& problems);

}  // namespace millrace::lab
