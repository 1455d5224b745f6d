// The jobs over HTTP: /v1/jobs, and OpenAI's Responses in the background, which are jobs too. A job
// is found by its id and its key's tenant together: to another key it does not exist.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/http.h"
#include "serve/jobs/jobs.h"

namespace millrace::serve {

class JobRoutes {
 public:
  // `jobs`: null until the model is loaded. `check_model`: whether it is served.
  using JobsNow = std::function<Jobs*()>;
  using CheckModel = std::function<ApiError(const std::string& name)>;
  JobRoutes(JobsNow jobs, CheckModel check_model)
      : jobs_(std::move(jobs)), check_model_(std::move(check_model)) {}

  std::vector<Route> all();
  // POST /v1/responses with "background": true.
  void respond_later(const HttpRequest& request, bool streams, const std::shared_ptr<Reply>& reply);

 private:
  struct Call;
  using CallPtr = std::shared_ptr<const Call>;
  using Work = void (JobRoutes::*)(const CallPtr& call);

  Handler on_jobs_thread(Work work);
  void run(Work work, std::shared_ptr<Call> call);
  void submit(const CallPtr& call);
  void submit_response(const CallPtr& call);
  // Of one job: by what follows its id, and by the method.
  void get(const CallPtr& call);
  void post(const CallPtr& call);
  void remove(const CallPtr& call);
  void list(const CallPtr& call);
  void get_response(const CallPtr& call);
  void cancel_response(const CallPtr& call);
  void remove_response(const CallPtr& call);

  // Of the requests that wait, together.
  const std::shared_ptr<std::atomic<size_t>> n_bytes_ = std::make_shared<std::atomic<size_t>>(0);
  const JobsNow jobs_;
  const CheckModel check_model_;
};

}  // namespace millrace::serve
