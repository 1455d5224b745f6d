# Writes the header that names the commit being built; run at every build, it touches the file only
# when the answer changed. Arguments: SOURCE (the tree), OUT (the header).
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")
else()
  execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND commit "-modified")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define MILLRACE_BUILD_COMMIT \"@commit@\"\n" @ONLY)
