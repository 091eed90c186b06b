// caisson-cdp as a whole: the browser, the clients, the line to the agent, and the look at the renderers, on one loop. The agent
// restarts the browser; this program never does by itself, so that there is one place that counts ends and waits between them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/cdp/browser.h"
#include "agent/cdp/confined.h"
#include "agent/cdp/control.h"
#include "agent/cdp/flags.h"
#include "agent/cdp/pages.h"
#include "agent/cdp/server.h"

namespace caisson::cdp {

struct Options {
  std::string socket, policies, scratch;  // scratch "": the environment's folders
  Start start;
  std::size_t least_filters = 0;
  std::optional<bool> allow_file_selection_dialogs;  // until a restart names another
};

// Errors: invalid_argument, a sentence.
[[nodiscard]] Result<Options> read_options(const std::vector<std::string>& arguments);

class Program {
 public:
  static constexpr std::int64_t kLookUs = 2'000'000;
  static constexpr std::int64_t kSoonUs = 100'000;  // after the browser is ready, and after a page has crashed

  Program(Loop& loop, Options options);
  ~Program();
  // Until it is told to end. Errors: the socket cannot be made, or stdin and stdout cannot be waited for.
  [[nodiscard]] Status run();

 private:
  enum class Next { stay, restart, leave };

  void obey(Result<Command> command);
  void end(Next next, const std::string& why);
  void start();
  [[nodiscard]] Status start_browser();
  void greet();
  void ended(const Browser::Ended& ended);
  void look();
  void look_soon();
  void tell_status();

  Loop& loop_;
  Options options_;
  Wishes wishes_;
  Control control_;
  Server server_;
  Browser browser_;
  Watch watch_;
  Zygotes zygotes_;
  Pages pages_;
  Loop::TimerId look_timer_ = 0;
  Next next_ = Next::stay;
  bool closing_ = false, soon_ = false;
  std::string name_, product_, last_end_;
};

}  // namespace caisson::cdp
