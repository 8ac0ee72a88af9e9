// BufferPool: blocks of memory that are shared while they are needed, and used again afterwards.
//
//   SharedBuffer part = pool.Take(bytes);     a thread fills it, sends it, or hands it over
//   part.reset();                             the last one who has it: it is free again
//
// Weights and gradients travel in blocks of a few sizes, several times a second; memory that is
// taken from the system each time would be cleared each time.
// Thread-safety: any thread. Memory: the most blocks that were ever in use at once, by size.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_WIRE_BUFFER_POOL_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_WIRE_BUFFER_POOL_H_

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/mutex.h"

namespace ringtail {

using SharedBuffer = std::shared_ptr<AlignedBuffer>;

class BufferPool {
 public:
  // Of at least one byte. The content is undefined.
  SharedBuffer Take(size_t bytes);

 private:
  // Outlives the pool as long as a block is in use.
  struct Free {
    Mutex mutex;
    std::map<size_t, std::vector<std::unique_ptr<AlignedBuffer>>> blocks RT_GUARDED_BY(mutex);
  };
  const std::shared_ptr<Free> free_ = std::make_shared<Free>();
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_WIRE_BUFFER_POOL_H_
