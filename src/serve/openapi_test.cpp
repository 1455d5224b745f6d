#include "serve/openapi.h"

#include <gtest/gtest.h>

#include "serve/dialect.h"

namespace millrace::serve {
namespace {

void check_references(const Json& document, const Json& at) {
  if (at.is_object() && at.contains("$ref")) {
    const auto path = at["$ref"].get<std::string>();
    ASSERT_TRUE(path.starts_with("#/")) << path;
    EXPECT_TRUE(document.contains(Json::json_pointer(path.substr(1)))) << path;
  }
  if (at.is_structured())
    for (const Json& inside : at) check_references(document, inside);
}

TEST(OpenApi, IsJsonWhoseReferencesLeadSomewhere) {
  const Json document = Json::parse(openapi_document("1.2.3"), nullptr, false);
  ASSERT_FALSE(document.is_discarded());
  EXPECT_EQ(document["openapi"], "3.1.0");
  EXPECT_EQ(document["info"]["version"], "1.2.3");
  check_references(document, document);
}

TEST(OpenApi, HasEveryRoute) {
  const Json document = Json::parse(openapi_document("1"));
  const Json& paths = document["paths"];
  for (const Dialect& dialect : dialects())
    EXPECT_TRUE(paths.contains(std::string(dialect.path))) << dialect.path;
  for (const char* path :
       {"/v1/messages/count_tokens", "/v1/models", "/v1/models/{id}", "/tokenize", "/detokenize",
        "/apply-template", "/v1/responses/{id}", "/v1/responses/{id}/cancel", "/v1/jobs",
        "/v1/jobs/{id}", "/v1/jobs/{id}/events", "/v1/jobs/{id}/pause", "/v1/jobs/{id}/resume",
        "/v1/jobs/{id}/cancel", "/v1/jobs/{id}/restart", "/health", "/metrics", "/version"})
    EXPECT_TRUE(paths.contains(path)) << path;
  EXPECT_FALSE(paths["/health"]["get"]["responses"].contains("401"));
  EXPECT_TRUE(paths["/version"]["get"]["responses"].contains("401"));
}

TEST(OpenApi, HasWhatOthersMount) {
  const Json document =
      Json::parse(openapi_document("1", {{"/lab/api/run/{id}", "lab_run", "One run", {"limit"}}}));
  const Json& route = document["paths"]["/lab/api/run/{id}"]["get"];
  EXPECT_EQ(route["operationId"], "lab_run");
  ASSERT_EQ(route["parameters"].size(), 2u);
  EXPECT_EQ(route["parameters"][0]["in"], "path");
  EXPECT_EQ(route["parameters"][1]["name"], "limit");
  check_references(document, document);
}

}  // namespace
}  // namespace millrace::serve
