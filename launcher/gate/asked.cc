// What clients want of a workspace's way out, by the agent's lines; and what door and dialer say that comes of it.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "launcher/common/base/sys.h"
#include "launcher/common/tables/way_ops.h"
#include "launcher/common/telling/json_text.h"
#include "launcher/gate/diagnosis.h"
#include "launcher/gate/gate.h"
#include "launcher/gate/inside.h"

namespace caisson::gate {
namespace {

constexpr std::string_view name(way::Op op) { return word(words(op), static_cast<std::size_t>(op)); }

template <class Message>
std::string text_of(const Message& message, std::string_view more = {}) {
  return std::string(reinterpret_cast<const char*>(&message), sizeof message).append(more);
}

}  // namespace

void Gate::asked(const Lines::From& from, const json::Value& request, const Lines::Reply& reply) {
  const auto entry = workspaces_.find(from.workspace);
  if (entry == workspaces_.end() || !entry->second.made) return reply(fail(Code::unavailable, "its way out is not made"));
  const auto op = text_of(request, "op");
  if (!op) return reply(std::unexpected(op.error()));
  if (*op == name(way::Op::health)) return reply(health(entry->second));
  if (*op == name(way::Op::figures)) return reply(figures_.shown());
  if (*op == name(way::Op::recent)) return reply(json::Value{{"records", entry->second.recent.shown()}});
  if (*op == name(way::Op::asks)) return reply(entry->second.asking.shown(sys::monotonic_us()));
  for (const auto one : {way::Op::allow, way::Op::deny, way::Op::revoke})
    if (*op == name(one)) return decide(entry, from, *op, request, reply);
  if (*op == name(way::Op::hand_over)) return hand_over(entry, from, request, reply);
  if (*op == name(way::Op::diagnose)) return diagnose(entry, request, reply);
  const auto done = entry->second.settings.change(*op, request);
  if (!done) return reply(std::unexpected(done.error()));
  if (*done->what != '\0') changed(entry, *done);
  reply(entry->second.settings.shown());
}

// From the next connection on. The door gets its lists again: connections that it keeps for later requests were made in the old
// way.
void Gate::changed(const Entry& entry, const Settings::Changed& change) {
  if (!opens_ && needs_opener(entry->second)) tell_opener(entry);
  forget_unbound(entry->second);
  tell_upstreams(entry);
  tell_mappings(entry);
  tell_lists(entry);
  (void)tell(Told::start, JsonText().string("workspace", entry->second.name).string(change.what, change.to).text());
}

json::Value Gate::health(const Workspace& workspace) const {
  json::Value wrong = json::Value::array();
  for (const Service* service : {&door_, &dialer_})
    if (!service->ready()) wrong.push_back(std::string("the ") + service->name() + " does not run: it is started again");
  const egress::Lists& lists = workspace.settings.lists();
  if (lists.of.empty()) wrong.push_back("no list is in force: nothing goes out");
  if (workspace.unlike()) wrong.push_back("lists differ, and sessions are not told apart here");
  return {{"door", door_.ready()}, {"dialer", dialer_.ready()}, {"consistent", wrong.empty()}, {"inconsistencies", wrong}};
}

// Only what is permitted is dialed, and that is on record.
void Gate::diagnose(const Entry& entry, const json::Value& request, const Lines::Reply& reply) {
  auto begun = Diagnosis::begin(entry->second.settings, request);
  if (!begun) return reply(std::unexpected(begun.error()));
  const Share share = begun->next() != Diagnosis::Next::none ? diagnoses_.take(entry->first) : nullptr;
  if (!share && begun->next() != Diagnosis::Next::none)
    return reply(fail(Code::limit, "too many diagnoses of this workspace run at once: try again"));
  const auto made = std::make_shared<Diagnosis>(std::move(*begun));
  const auto end = [this, made, reply, share, name = entry->second.name] {
    (void)tell(made->refused() ? Told::refused : Told::connection, made->record(name));
    reply(made->result());
  };
  switch (made->next()) {
    case Diagnosis::Next::none:
      return end();
    case Diagnosis::Next::inside:
      if (listens_at(entry->second, made->port())) return made->reached(ECONNREFUSED), end();
      return connect_inside(loop_, entry->second.user_ns, entry->second.net_ns, made->port(), [made, end](const Fd&, int error) {
        made->reached(error);
        end();
      });
    case Diagnosis::Next::dial:
      if (entry->second.by_ports && !listens_at(entry->second, made->port())) made->by_proxy_alone();
      break;
  }
  const egress::Probe probe{
      .id = ++last_probe_, .port = made->port(), .host_bytes = static_cast<std::uint16_t>(made->host().size())};
  probes_[probe.id] = [made, end](const egress::DialAnswer& answer) {
    made->dialed(answer);
    end();
  };
  // One that the dialer does not answer, because it ends, has failed.
  loop_.after(Diagnosis::kPatienceUs, [this, id = probe.id] {
    if (auto late = probes_.extract(id)) late.mapped()({.id = id, .error = ETIMEDOUT, .rule = -1});
  });
  dialer_.send({egress::Order::probe, entry->second.generation, entry->first}, {}, text_of(probe, made->host() + made->domain()));
}

void Gate::heard_probed(std::string_view text) {
  egress::DialAnswer answer{};
  if (text.size() != sizeof answer) return;
  std::memcpy(&answer, text.data(), sizeof answer);
  if (auto probe = probes_.extract(answer.id)) probe.mapped()(answer);
}

// A door that was taken over reaches ports of the workspace that its own clients have opened to it, and no others.
void Gate::heard_inside(const Entry& entry, std::string_view text) {
  egress::Inside asked{};
  if (text.size() != sizeof asked) return;
  std::memcpy(&asked, text.data(), sizeof asked);
  const auto answer = [this, asked, number = entry->first](const Fd& made, int error) {
    const egress::Inside told{asked.id, asked.port, static_cast<std::uint16_t>(error)};
    const egress::OrderHead head{egress::Order::inside, 0, number};
    if (made) door_.send(head, {made.get()}, text_of(told));
    else door_.send(head, {}, text_of(told));
  };
  if (!entry->second.settings.leads_inside(asked.port)) return answer(Fd(), EACCES);
  if (listens_at(entry->second, asked.port))
    return answer(Fd(), ECONNREFUSED);  // it would be led to the door, and round and round
  const Share share = inside_.take(entry->first);
  if (!share) return answer(Fd(), EAGAIN);
  connect_inside(loop_, entry->second.user_ns, entry->second.net_ns, asked.port,
                 [answer, share](const Fd& made, int error) { answer(made, error); });
}

}  // namespace caisson::gate
