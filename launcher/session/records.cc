// What the manager does with what the auditor tells: records in the logs of the sessions, and what is attested afterwards.

#include "launcher/session/manager.h"

namespace caisson::session {

void Manager::start_auditor() {
  denials_ = std::make_unique<Denials>(loop_, settings_.auditor_uid, features_.change_uid.ok(),
                                       [this](const std::string& id, audit::Event event, json::Value fields, bool closed) {
                                         if (!id.empty()) return on_denial(id, event, std::move(fields), closed);
                                         record(event, std::move(fields));
                                         // Those built ahead have lost their listener: nobody shall be given one.
                                         for (auto& [session, entry] : entries_)
                                           if (closed && entry->owner == 0) entry->session->end("auditor_died");
                                       });
  if (!features_.notify.ok()) return;
  // Without it filters answer by themselves, and probe, plan and reports say why; a policy that requires denial_audit refuses.
  if (const Status done = denials_->start(); !done) {
    denials_.reset();
    features_.notify = {done.error().sys != 0 ? done.error().sys : EIO, done.error().what};
    sys::say("caisson-launcher: refused system calls are not recorded: " + done.error().text());
  }
}

void Manager::on_denial(const std::string& id, audit::Event event, json::Value fields, bool closed) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || !it->second->log) {  // one that nobody has been given yet
    fields["session"] = id;
    if (!closed) record(event, std::move(fields));
    return;
  }
  Entry& entry = *it->second;
  if (closed) entry.session->lose_denials("refused calls are no longer recorded: see denial_audit_closed in the session's log");
  if (event == audit::Event::session_end) entry.denials = std::move(fields);  // written with the last record
  else if (!entry.log->append(event, fields)) entry.session->end("audit_failed");
  // Nobody answers its calls that name files, and the kernel refuses them all.
  else if (closed && fields.value("reason", "") == "observer_died") entry.session->end("observer_died");
}

}  // namespace caisson::session
