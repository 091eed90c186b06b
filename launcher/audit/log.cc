#include "launcher/audit/log.h"
