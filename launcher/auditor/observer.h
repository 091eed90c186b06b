// caisson-observer: holds the listeners of the sessions whose policy has their paths observed. It reads what a call names from
// the caller's memory, which only the launcher's uid may, tells the auditor, and answers: what the filter refuses is refused,
// what it allows goes on. It opens nothing and understands nothing of what it reads. When the auditor is gone it answers without
// telling, because calls that nobody answers would fail; it ends when it holds no listener any more.
#pragma once

namespace caisson::auditor {

// Its exit status.
[[nodiscard]] int observe();

}  // namespace caisson::auditor
