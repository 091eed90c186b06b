// libxcb's structures of the keyboard extension. Some of their members have a name that C++ keeps for itself.
#pragma once

#include <xcb/xproto.h>

#define explicit explicit_member
#include <xcb/xkb.h>
#undef explicit
