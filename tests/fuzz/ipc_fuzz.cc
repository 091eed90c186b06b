// What a hostile agent can send, mutated: the framing, the strict parser, the connection's state table, and what a request may
// narrow. A broken promise aborts. Messages of one input are separated by the byte 0x1e; one that begins with a byte from 1 to 6
// carries that many descriptors.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "launcher/common/base/scm.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/confine/query.h"
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/filter.h"
#include "launcher/compiler/frozen_write.h"
#include "launcher/compiler/load.h"
#include "launcher/compiler/narrow.h"
#include "launcher/compiler/planner.h"
#include "launcher/compiler/stages.h"
#include "launcher/pid1/execute/subset.h"
#include "launcher/pid1/ipc/connection.h"

namespace caisson {
namespace {

void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

int lowest_free() {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(fd);
  return fd;
}

std::size_t depth(const json::Value& value) {
  std::size_t deepest = 0;
  if (value.is_structured())
    for (const auto& inner : value) deepest = std::max(deepest, depth(inner));
  return deepest + (value.is_structured() ? 1 : 0);
}

std::optional<json::Value> check_parser(std::string_view text) {
  const json::Bounds bounds{.max_bytes = ipc::kMaxMessage};
  auto value = json::parse(text, bounds);
  if (!value) return promise(!value.error().what.empty(), "an error says what is wrong"), std::nullopt;
  promise(depth(*value) <= bounds.max_depth, "no value is deeper than the bound");
  const std::string again = json::dump(*value);
  promise(again.find('\n') == std::string::npos, "a dump is one line");
  const auto same = json::parse(again, {.max_bytes = again.size() + 1});
  promise(same && *same == *value, "what was parsed and dumped is parsed alike");
  return std::move(*value);
}

std::shared_ptr<const policy::Policy> some_policy() {
  auto policy = std::make_shared<policy::Policy>();
  policy->domain = "fuzz";
  for (const auto& [path, source, access, execute] :
       std::initializer_list<std::tuple<const char*, const char*, policy::Access, bool>>{
           {"/data", "/srv/data", policy::Access::read_write, false},
           {"/data/fixed", "/data/fixed", policy::Access::read, false},
           {"/data/fixed/open", "/data/fixed/open", policy::Access::read_write, true},
           {"/usr", "/usr", policy::Access::read, true}}) {
    policy::Grant grant;
    grant.path = path;
    grant.source = source;
    grant.access = access;
    grant.execute = execute;
    policy->grants.push_back(std::move(grant));
  }
  policy->hide = {"/usr/lib/caisson"};
  return policy;
}

void check_narrowing(const json::Value& asked) {
  static const auto kPolicy = some_policy();
  const auto by = policy::parse_narrowing(asked);
  if (!by) return;
  const auto narrowed = policy::narrow(kPolicy, *by);
  if (!narrowed) return;
  const policy::Policy &less = **narrowed, &full = *kPolicy;
  promise(!confine::wider(less, full), "the check lets through what narrowing makes");
  for (const policy::Row& row : policy::kRows)
    if (const auto* limit = std::get_if<std::uint64_t policy::Limits::*>(&row.member))
      promise(less.limits.**limit <= full.limits.**limit, "no limit grows");
  promise(less.devices == full.devices && less.env.set == full.env.set && less.require == full.require, "the rest stays");
  promise(less.network <= full.network && less.home <= full.home && less.tmp <= full.tmp, "nothing is shared more");
  std::vector<std::string> probes{"/", "/etc", "/etc/shadow", "/srv/data", "/usr/lib/caisson", "/data/fixed/open/x"};
  for (const auto& grant : less.grants)
    for (const char* below : {"", "/x", "/fixed", "/fixed/open", "/fixed/open/x"}) probes.push_back(grant.path + below);
  for (const std::string& path : probes) {
    const policy::Grant* now = policy::ruling_grant(less.grants, path);
    if (now == nullptr) continue;
    const policy::Grant* before = policy::ruling_grant(full.grants, path);
    promise(before != nullptr, "no path is seen that was not");
    promise(now->access <= before->access && (before->execute || !now->execute), "no access grows");
    promise(now->source + path.substr(now->path.size()) == before->source + path.substr(before->path.size()),
            "what lies at a path stays the same");
  }
}

// What a program of ours is asked and answers with is read like anybody's: whatever the bytes, a value of the types or none.
void check_frozen(std::string_view bytes) {
  policy::Writer head;
  head(policy::frozen_mark());
  const std::string marked = head.bytes.append(bytes);
  for (const std::string_view text : {bytes, std::string_view(marked)}) {
    (void)policy::thaw(text);
    promise(!confine::answer_plans(text).empty() && !confine::answer_narrowing(text).empty(), "whatever is asked is answered");
    const auto filter = confine::read_filter(text);
    promise(!filter || (!filter->program.empty() && filter->program.size() <= BPF_MAXINSNS),
            "a filter that the kernel could take");
    const auto answer = confine::read_filter(confine::answer_filter(text));
    promise(answer || answer.error().code == Code::invalid_argument, "what was asked is answered, or why not");
  }
  policy::SyscallSet set;
  set.rules = bytes;
  (void)policy::thaw_rules(set);
  policy::Policy policy;
  policy::Reader reader(bytes);
  reader(policy);
  if (!reader.good()) return;
  policy::Writer writer;
  writer(policy);
  policy::Policy again;
  policy::Reader same(writer.bytes);
  same(again);
  promise(same.whole() && policy::to_json(again) == policy::to_json(policy), "what was read and written is read alike");
}

void send_one(int socket, std::string_view text) {
  std::size_t fds = 0;
  if (!text.empty() && text[0] >= 1 && text[0] <= 6) {
    fds = static_cast<std::size_t>(text[0]);
    text.remove_prefix(1);
  }
  const int zeros[6] = {};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof zeros)] = {};
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (fds != 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds * sizeof(int));
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds * sizeof(int));
    std::memcpy(CMSG_DATA(c), zeros, fds * sizeof(int));
  }
  (void)::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void check_connection(std::string_view input) {
  static const std::unique_ptr<Loop> loop = std::move(*Loop::create({}));
  auto pair = std::move(*sys::seqpacket_pair());
  int violations = 0, closed = 0;
  bool opened = false;
  ipc::Connection::Handler handler;
  handler.request = [&](ipc::Connection& c, ipc::Connection::Request r) {
    promise(violations + closed == 0, "nothing is asked after the end");
    promise(r.id > 0 && r.body.is_object(), "a request has an id and is an object");
    promise((r.op == ipc::Op::hello) != opened, "hello comes first, and once");
    if (r.op == ipc::Op::hello) c.opened(), opened = true;
    if (const auto narrow = r.body.find("narrow"); narrow != r.body.end()) check_narrowing(*narrow);
    if (r.id % 2 == 0) c.reply(r.id, json::Value::object());
  };
  handler.violation = [&](ipc::Connection&, const std::string& why) {
    ++violations;
    promise(!why.empty(), "a violation says why");
  };
  handler.closed = [&](ipc::Connection&) { ++closed; };
  {
    ipc::Connection connection(std::move(pair.first), *loop, std::move(handler));
    promise(connection.start().has_value(), "a connection starts");
    for (int i = 0; i < 8 && !input.empty(); ++i) {
      const std::size_t end = std::min(input.find('\x1e'), input.size());
      send_one(pair.second.get(), input.substr(0, end));
      input.remove_prefix(std::min(end + 1, input.size()));
    }
    loop->after(0, [] { loop->stop(); });
    promise(loop->run().has_value(), "the loop runs");
  }
  promise(violations + closed <= 1, "there is one end");
}

}  // namespace
}  // namespace caisson

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  static const int warm = (caisson::check_connection(""), 0);
  (void)warm;
  const int before = caisson::lowest_free();
  if (const auto value = caisson::check_parser(input)) caisson::check_narrowing(*value);
  caisson::check_frozen(input);
  caisson::check_connection(input);
  caisson::promise(caisson::lowest_free() == before, "no descriptor stays open");
  return 0;
}
