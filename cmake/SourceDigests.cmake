# Writes the header with a digest of the source of every op and of the engine as a whole: what was learned from
# a measurement goes stale when it changes. Run at every build, it touches the file only when the answer
# changed. Arguments: SOURCE (the tree), OUT (the header).
cmake_minimum_required(VERSION 3.25)

# Of the files' names and contents, in the order of their names. Tests and texts do not count.
function(digest_of out)
  list(FILTER ARGN EXCLUDE REGEX "(_test\\.cpp|_test\\.h|\\.md)$")
  list(SORT ARGN)
  set(all "")
  foreach(file ${ARGN})
    file(SHA256 ${file} digest)
    file(RELATIVE_PATH name ${SOURCE} ${file})
    string(APPEND all "${name} ${digest}\n")
  endforeach()
  string(SHA256 digest "${all}")
  string(SUBSTRING ${digest} 0 16 digest)
  set(${out} ${digest} PARENT_SCOPE)
endfunction()

# What every kernel is made of besides its folder.
file(GLOB shared ${SOURCE}/src/kernels/*.h ${SOURCE}/src/kernels/*.cuh ${SOURCE}/src/kernels/*.inc
  ${SOURCE}/src/base/math* ${SOURCE}/src/base/small_float.h ${SOURCE}/src/base/isa.h)
set(rows "")
file(GLOB tables ${SOURCE}/src/kernels/*/table.cpp)
list(SORT tables)
foreach(table ${tables})
  get_filename_component(folder ${table} DIRECTORY)
  get_filename_component(op ${folder} NAME)
  file(GLOB_RECURSE files ${folder}/*)
  digest_of(digest ${files} ${shared})
  string(APPEND rows "    {\"${op}\", \"${digest}\"},\n")
endforeach()
set(files "")
foreach(folder base machine memory tensor kernels exec files text model engine serve)
  file(GLOB_RECURSE more ${SOURCE}/src/${folder}/*)
  list(APPEND files ${more})
endforeach()
digest_of(digest ${files})
string(APPEND rows "    {\"\", \"${digest}\"},\n")
file(CONFIGURE OUTPUT ${OUT} CONTENT
"inline constexpr struct {
  const char *op, *digest;
} kSourceDigests[] = {
@rows@};
" @ONLY)
