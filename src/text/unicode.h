// What Unicode says of a character, for those who read text that people wrote.
#pragma once

namespace millrace {

// A digit, fraction, superscript or number in a circle, of any script (category N).
bool is_number(char32_t code);

}  // namespace millrace
