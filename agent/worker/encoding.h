// Text in encodings other than UTF-8, for str_replace_editor. text_encoding.py, beside this program, detects the encoding and
// converts both ways, in a process of its own as for documents. UTF-8 never goes there.
#pragma once

#include "agent/worker/paths.h"

namespace caisson::worker {

// Whether to treat it as UTF-8: it is valid, or most of its characters beyond ASCII are.
[[nodiscard]] bool mostly_utf8(std::string_view bytes);

struct Decoded {
  std::string encoding;  // "": unknown; the text is the bytes
  std::string text;
};
// known: the file's encoding when it was last read, which is tried first; "": none. Without chardet the encoding stays unknown.
[[nodiscard]] Done<Decoded> decode_text(std::string bytes, const std::string& known, const Request& request);
// encoding "": returns the text itself. invalid_target: the encoding lacks a character of the text.
[[nodiscard]] Done<std::string> encode_text(std::string text, const std::string& encoding, const std::string& path,
                                            const Request& request);

}  // namespace caisson::worker
