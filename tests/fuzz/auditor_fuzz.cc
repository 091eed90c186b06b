// What reaches caisson-auditor, mutated: orders, what the observer tells, the registers and names of a session's processes, and
// the launcher's texts that they are judged by. A broken promise aborts. Parts of one input are separated by the byte 0x1e: a
// message, a text of refusals and view, /proc/<tid>/status, two paths.
#include <linux/seccomp.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "launcher/auditor/caller.h"
#include "launcher/auditor/decode.h"
#include "launcher/auditor/messages.h"
#include "launcher/auditor/view.h"
#include "launcher/auditor/watch.h"
#include "launcher/common/base/json.h"
#include "launcher/common/telling/json_text.h"
#include "launcher/common/watching/observer_protocol.h"

namespace caisson::auditor {
namespace {

void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

std::string_view next(std::string_view& input) {
  const std::size_t end = std::min(input.find('\x1e'), input.size());
  const std::string_view part = input.substr(0, end);
  input.remove_prefix(std::min(end + 1, input.size()));
  return part;
}

// As the launcher takes it (pid1/session/denials.cc).
json::Value object(std::string_view text, const char* what) {
  promise(text.size() <= kMaxText, "a record fits into one part");
  auto value = json::parse(text, {.max_bytes = kMaxText, .max_depth = 4, .max_values = 4096});
  promise(value && value->is_object(), what);
  for (const char c : text) promise(c >= 0x20 && c <= 0x7e, "a record is printable ASCII");
  return std::move(*value);
}

void check_orders(std::string_view message) {
  for (const std::size_t fds : {0U, 1U, 2U}) {
    const auto order = parse_order(message, fds);
    if (!order) continue;
    promise(order->session.size() < sizeof(Head::session), "a session's name ends");
    promise(fds == (order->type == Type::release ? 0U : 1U), "a descriptor comes where one belongs");
    promise(order->text.size() + sizeof(Head) == message.size(), "the text is the rest");
  }
  const auto told = parse_told(message);
  if (!told) return;
  std::size_t size = sizeof(Told);
  for (const auto& text : told->texts)
    if (text) promise(text->size() <= kMaxPath, "no text is longer than a path"), size += text->size();
  promise(size == message.size(), "nothing is left over");
}

void check_decoder(std::string_view registers) {
  unsigned long long args[6] = {};
  std::memcpy(args, registers.data(), std::min(registers.size(), sizeof args));
  for (const int nr : {41, 56, 157, 16, 101, 133, 165, 272, 321, 437, static_cast<int>(args[0] % 512), -1})
    (void)object(decode(nr, args), "words of a call are a JSON object");
}

void check_view(const View& view, std::string_view path, std::string_view base) {
  const std::string normal = view.normal(path, base);
  promise(normal.starts_with('/') && (normal.size() == 1 || !normal.ends_with('/')),
          "a path is absolute, without a slash at its end");
  promise(("/" + normal + "/").find("/../") == std::string::npos && normal.find("//") == std::string::npos,
          "and has no dots in it");
  for (const Want want : {Want::look, Want::execute, Want::create, Want::remove, Want::change, Want::connect})
    if (const Denied* denied = view.judge(want, normal))
      promise(*denied->error == 'E' && *denied->why != '\0', "a refusal has a reason");
}

void check_session(const std::shared_ptr<const Rules>& rules, std::string_view registers, std::string_view path,
                   std::string_view base) {
  std::vector<std::string> records;
  Sink sink{[] { return true; }, [&](Type, const std::string&, std::string text) { records.push_back(std::move(text)); }};
  TokenBucket all{kAllBurst, kAllPerSecond};
  Watch watch("s-fuzz", {}, rules);
  Texts told{};
  std::memcpy(&told.head.call.data, registers.data(), std::min(registers.size(), sizeof told.head.call.data));
  for (std::size_t i = 0; i < 4; ++i) told.texts[i] = (i % 2 == 0 ? path : base).substr(0, kMaxPath);
  const int given = told.head.call.data.nr;
  for (const int nr :
       {given, kPathCalls[static_cast<unsigned>(given) % std::size(kPathCalls)].nr, static_cast<int>(SYS_renameat2)}) {
    told.head.call.data.nr = nr;
    (void)watch.told(told, 1'000'000, -1, all, sink);
  }
  told.texts[0].reset();
  (void)watch.told(told, 1'000'000, -1, all, sink);
  watch.end(2'000'000, sink);
  for (const std::string& text : records) (void)object(text, "a record is a JSON object");
  promise(object(records.back(), "totals").contains("recorded"), "the end has totals");
}

}  // namespace
}  // namespace caisson::auditor

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace caisson::auditor;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  check_orders(input);
  const std::string_view message = next(input), text = next(input).substr(0, kMaxMessage), status = next(input),
                         path = next(input), base = next(input);
  check_orders(message);
  check_decoder(message);
  promise(refused_numbers(text).size() <= kMaxRefused, "no more numbers than fit into a message");
  const Caller caller = parse_status(7, status);
  (void)object(caisson::JsonText().string("comm", caller.comm.substr(0, 64)).text(), "a name is a string");
  const auto rules = Rules::parse(text);
  check_view(rules->view, path, base);
  check_session(rules, message, path, base);
  return 0;
}
