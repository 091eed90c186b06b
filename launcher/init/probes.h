#pragma once

#include "launcher/common/wire/probes.h"

namespace caisson::init {

// The result of the attack, or -errno. Called in a child that ends right after: what a probe opens is left to it.
long run_probe(Probe probe, const Targets& targets);

}  // namespace caisson::init
