// The connector's own filter: after seal() it can make TCP sockets, bind and connect them, read the memory of processes and where
// their links in /proc lead, answer its listener, and talk to its sockets. Any other call kills it. Which ports it reaches is for
// the Landlock domain that it is started in (builder/connector.h).
#pragma once

namespace caisson::connector {

// False with errno. Needs no_new_privs.
[[nodiscard]] bool seal();

}  // namespace caisson::connector
