# What every target of the house shares: warnings, numerics flags, and the two functions that make a
# library out of a folder and a test program out of its *_test.cpp files.

add_library(millrace_flags INTERFACE)
target_compile_features(millrace_flags INTERFACE cxx_std_20)
# -ffp-contract=off: g++ fuses even intrinsics' mul+add into an FMA, which would move bits between
# variants of one numerics class. FMAs are written out where they are meant.
# -Wno-psabi: g++ remarks on every vector or 64-byte aligned type passed by value.
# -Wno-error in Release: what ./run builds must not fail on the warnings of a compiler we did not try,
# nor on those that g++ 12 gets wrong at -O3, nor sanitised code on those of -O1; the dev build has the same
# code and no mercy.
target_compile_options(millrace_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Werror;-Wno-psabi;-ffp-contract=off>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Wno-error>)
target_include_directories(millrace_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
if(MILLRACE_SANITIZE)
  target_compile_options(millrace_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${MILLRACE_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all;-Wno-error>
    # After -fsanitize, which would turn it on again: a target's own options come before.
    $<$<BOOL:$<TARGET_PROPERTY:MILLRACE_NO_VPTR_CHECK>>:-fno-sanitize=vptr>)
  target_link_options(millrace_flags INTERFACE -fsanitize=${MILLRACE_SANITIZE})
endif()
set(CMAKE_CXX_EXTENSIONS OFF)

# millrace_system_library(name header lib): the target millrace_<name> for a library of the system
# that brings no CMake package.
function(millrace_system_library name header lib)
  find_path(MILLRACE_${name}_INCLUDE ${header} REQUIRED)
  find_library(MILLRACE_${name}_LIBRARY ${lib} REQUIRED)
  add_library(millrace_${name} INTERFACE)
  target_include_directories(millrace_${name} SYSTEM INTERFACE ${MILLRACE_${name}_INCLUDE})
  target_link_libraries(millrace_${name} INTERFACE ${MILLRACE_${name}_LIBRARY})
endfunction()

# millrace_library(folder LINKS lib...): the library millrace_<folder> from every source below src/<folder>
# except tests; millrace_<folder>_test from the *_test.cpp files beside them.
function(millrace_library folder)
  cmake_parse_arguments(ARG "" "" "LINKS;PUBLIC_LINKS" ${ARGN})
  set(here ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${here}/*.cpp)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${here}/*_test.cpp)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${here}/*.h)
  if(tests)
    list(REMOVE_ITEM sources ${tests})
  endif()
  if(MILLRACE_CUDA)
    file(GLOB_RECURSE device CONFIGURE_DEPENDS ${here}/*.cu)
    list(APPEND sources ${device})
  endif()
  add_library(millrace_${folder} STATIC ${sources} ${headers})
  target_link_libraries(millrace_${folder} PUBLIC millrace_flags ${ARG_PUBLIC_LINKS} PRIVATE ${ARG_LINKS})
  if(MILLRACE_CUDA)
    millrace_cuda_target(millrace_${folder})
  endif()
  if(MILLRACE_TESTS AND tests)
    millrace_test(millrace_${folder}_test SOURCES ${tests} LINKS millrace_${folder} ${ARG_LINKS})
  endif()
endfunction()

# millrace_test(name SOURCES file... LINKS lib...): one program, one ctest entry per TEST, one label
# each (gtest_discover_tests drops a second). `threads`, which also runs under TSan: suites named
# *Threads*, and the kernels' promise 1, which runs them on several lanes. `full`: suites named *Full*.
# The rest is `fast`. Parameterised tests go by the name their suite gives them; their printed value
# would be bytes.
function(millrace_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} fmt::fmt Threads::Threads GTest::gtest GTest::gtest_main)
  set(discover DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES TEST_PREFIX "${name}.")
  set(threads "*Threads*:*_keeps_promise1")
  gtest_discover_tests(${name} ${discover} TEST_FILTER "-${threads}:*Full*" PROPERTIES LABELS fast)
  gtest_discover_tests(${name} ${discover} TEST_FILTER "${threads}:-*Full*" TEST_LIST ${name}_threads
    PROPERTIES LABELS threads)
  gtest_discover_tests(${name} ${discover} TEST_FILTER "*Full*" TEST_LIST ${name}_full
    PROPERTIES LABELS full)
endfunction()
