# Writes the source that holds the texts of `millrace accuracy`, which lab/accuracy.h declares. Arguments: FILES
# (a list), OUT (the source).
cmake_minimum_required(VERSION 3.25)
set(arrays "")
set(rows "")
set(i 0)
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "constexpr unsigned char kText${i}[] = {${bytes}0};\n")
  string(APPEND rows "      {\"${name}\", {reinterpret_cast<const char*>(kText${i}), sizeof kText${i} - 1}},\n")
  math(EXPR i "${i} + 1")
endforeach()
file(WRITE ${OUT} "#include \"lab/accuracy.h\"\n\nnamespace millrace::lab {\nnamespace {\n
${arrays}\n}  // namespace\n
std::span<const SampleText> sample_texts() {
  static const SampleText kTexts[] = {\n${rows}  };
  return kTexts;
}\n\n}  // namespace millrace::lab\n")
