#include "dist/parameter_server/wire/buffer_pool.h"

#include <utility>

namespace ringtail {

SharedBuffer BufferPool::Take(size_t bytes) {
  std::unique_ptr<AlignedBuffer> block;
  {
    MutexLock lock(&free_->mutex);
    auto& blocks = free_->blocks[bytes];
    if (!blocks.empty()) {
      block = std::move(blocks.back());
      blocks.pop_back();
    }
  }
  if (block == nullptr) block = std::make_unique<AlignedBuffer>(bytes);
  return {block.release(), [free = free_](AlignedBuffer* used) {
            std::unique_ptr<AlignedBuffer> back(used);
            MutexLock lock(&free->mutex);
            free->blocks[back->size_bytes()].push_back(std::move(back));
          }};
}

}  // namespace ringtail
