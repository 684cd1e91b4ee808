// Everything a user of the library needs.
#pragma once

#include <hapax/embedded.h>  // IWYU pragma: export
#include <hapax/ops.h>       // IWYU pragma: export
#include <hapax/result.h>    // IWYU pragma: export
#include <hapax/store.h>     // IWYU pragma: export
#include <hapax/verdicts.h>  // IWYU pragma: export
