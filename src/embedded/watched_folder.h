// A folder whose syncs of the journal are timed. Everything else is as without it.
#pragma once

#include <functional>
#include <memory>

#include <hapax/embedded.h>

#include "ports/files.h"

namespace hapax::embedded {

[[nodiscard]] std::unique_ptr<ports::Folder> watch_syncs(std::unique_ptr<ports::Folder> folder,
                                                         std::function<void(const Synced&)> tell);

}  // namespace hapax::embedded
