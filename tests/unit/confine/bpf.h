// An interpreter of classic BPF: what a filter answers is computed from the kernel's definition of the instructions, so that a
// wrong jump shows without loading anything.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

#include "launcher/common/confine/seccomp.h"

namespace caisson::confine {

inline constexpr std::uint32_t kEperm = SECCOMP_RET_ERRNO | EPERM;

inline std::uint32_t interpret(const Program& program, const seccomp_data& data) {
  std::uint32_t a = 0;
  for (std::size_t pc = 0; pc < program.size(); ++pc) {
    const sock_filter& i = program[pc];
    switch (i.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&a, reinterpret_cast<const char*>(&data) + i.k, 4);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= i.k;
        break;
      case BPF_JMP | BPF_JA:
        pc += i.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        pc += a == i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        pc += a >= i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        pc += a > i.k ? i.jt : i.jf;
        break;
      case BPF_RET | BPF_K:
        return i.k;
      default:
        ADD_FAILURE() << "unexpected instruction " << i.code;
        return 0;
    }
  }
  ADD_FAILURE() << "ran off the end";
  return 0;
}

}  // namespace caisson::confine
