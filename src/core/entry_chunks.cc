#include "core/entry_chunks.h"

#include <sys/mman.h>

namespace hapax::core {

std::shared_ptr<std::byte[]> map_pages(std::size_t bytes) {
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  HAPAX_ASSERT(pages != MAP_FAILED, "the system has memory for another chunk");
  return {static_cast<std::byte*>(pages), [bytes](std::byte* mapped) { ::munmap(mapped, bytes); }};
}

}  // namespace hapax::core
