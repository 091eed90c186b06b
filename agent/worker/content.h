// Reading and writing the content of files: whole, by lines, and in parts.
#pragma once

#include "agent/worker/handles.h"

namespace caisson::worker {

// {path, start?, end?}: lines from 0, the end not included, negative ones from the end -> {path} + bytes
[[nodiscard]] Outcome read_file(const Request& request);
// {path, append?} + bytes -> {path, bytes_written}
[[nodiscard]] Outcome write_file(const Request& request);
// {path, old_size} + old and new text -> {path, count}
[[nodiscard]] Outcome replace_in_file(const Request& request);

// {path?, name} -> {handle}; {handle} + bytes -> {}; {handle, path?} -> {path, size}; {handle} -> {}
[[nodiscard]] Outcome upload_begin(Handles& handles, const Request& request);
[[nodiscard]] Outcome upload_part(Handles& handles, const Request& request);
[[nodiscard]] Outcome upload_end(Handles& handles, const Request& request);
[[nodiscard]] Outcome upload_abort(Handles& handles, const Request& request);

// {path} -> {handle, path, size, version, modified}; {handle, offset, most} -> {version} + bytes; {handle} -> {}
[[nodiscard]] Outcome download_open(Handles& handles, const Request& request);
[[nodiscard]] Outcome download_part(Handles& handles, const Request& request);
[[nodiscard]] Outcome download_close(Handles& handles, const Request& request);

}  // namespace caisson::worker
