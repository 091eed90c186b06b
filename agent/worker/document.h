// The text of documents, for str_replace_editor's view. document_view.py, beside this program, reads them in a process of its
// own, so a parser that crashes takes nothing else with it.
#pragma once

#include "agent/worker/paths.h"

namespace caisson::worker {

// "pdf", "xlsx", "pptx" by the name's ending; "" otherwise.
[[nodiscard]] std::string document_kind(const std::string& path);

struct Document {
  std::string text;
  json::Value metadata;
};
// invalid_target: the reader's own message.
[[nodiscard]] Done<Document> view_document(const Fd& file, const std::string& path, const std::string& kind,
                                           const Request& request);

}  // namespace caisson::worker
