// Jobs as clients see them.
#pragma once

#include "serve/jobs/jobs.h"

namespace millrace::serve {

std::string job_name(const JobRow& row);  // "job_..."
// Without its answer.
Json job_json(const Jobs& jobs, const JobRow& row);
// As the API that it was asked through gives it; null while it has not ended.
ApiResult<Json> job_answer(const Jobs& jobs, const JobRow& row);
// A Responses object at any moment.
ApiResult<Json> response_json(const Jobs& jobs, const JobRow& row);

}  // namespace millrace::serve
