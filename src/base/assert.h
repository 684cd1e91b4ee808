// Assertions about our own code. They stay on in release: a broken state must not be written down.
#pragma once

#include <cstdio>
#include <cstdlib>

#define HAPAX_ASSERT(condition, what)                                                    \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "hapax: %s:%d: %s must hold: %s\n", __FILE__, __LINE__, what, \
                   #condition);                                                          \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
