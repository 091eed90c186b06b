// Text in other encodings than UTF-8, for str_replace_editor: found out, made UTF-8 and back by text_encoding.py beside this
// program, in a process of its own, as documents are. UTF-8 never goes there.
#pragma once

#include "agent/worker/paths.h"

namespace caisson::worker {

// Whether it is to be taken as UTF-8: it is, or more of its characters beyond ASCII are than are not.
[[nodiscard]] bool mostly_utf8(std::string_view bytes);

struct Decoded {
  std::string encoding;  // "": unknown; the text is the bytes
  std::string text;
};
// known: the file's encoding when it was last read, tried first; "" for none. Without chardet the encoding stays unknown.
[[nodiscard]] Done<Decoded> decode_text(std::string bytes, const std::string& known, const Request& request);
// encoding "": the text itself. invalid_target: it has no such character.
[[nodiscard]] Done<std::string> encode_text(std::string text, const std::string& encoding, const std::string& path,
                                            const Request& request);

}  // namespace caisson::worker
