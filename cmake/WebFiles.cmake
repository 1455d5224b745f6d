# Writes the source that holds a page's files, which HEADER declares. Arguments: FILES (a list), OUT
# (the source), HEADER, NAMESPACE (of its web_files()).
cmake_minimum_required(VERSION 3.25)
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")
set(arrays "")
set(rows "")
set(i 0)
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  string(REGEX REPLACE ".*[.]" "" ending ${name})
  set(type "${type_${ending}}")
  if(type STREQUAL "")
    message(FATAL_ERROR "${file}: no content type is known for .${ending}")
  endif()
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "constexpr unsigned char kFile${i}[] = {${bytes}0};\n")
  string(APPEND rows "      {\"/${name}\", \"${type}\", view(kFile${i}, sizeof kFile${i} - 1)},\n")
  math(EXPR i "${i} + 1")
endforeach()
file(WRITE ${OUT} "#include \"${HEADER}\"\n\nnamespace millrace::${NAMESPACE} {\nnamespace {\n
${arrays}
std::string_view view(const unsigned char* bytes, size_t n) {
  return {reinterpret_cast<const char*>(bytes), n};
}\n\n}  // namespace\n
std::span<const serve::WebFile> web_files() {
  static const serve::WebFile kFiles[] = {\n${rows}  };
  return kFiles;
}\n\n}  // namespace millrace::${NAMESPACE}\n")
