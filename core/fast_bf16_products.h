// Whether products of bfloat16 pairs (core/kernels/bfloat16.h) are fast on this machine.
// Thread-safety: any thread. Cost: less than 2 ms, once in a process.
#ifndef RINGTAIL_CORE_FAST_BF16_PRODUCTS_H_
#define RINGTAIL_CORE_FAST_BF16_PRODUCTS_H_

namespace ringtail {

// Measured: processors where the instruction is slow (Sapphire Rapids and its successors) have it by
// cpuid, too. On Emerald Rapids it takes 3.8 times as long as one of f32; where it is no microcode it should
// take as long, so all processes of a machine have the same answer. False where SelectedKernelIsa() has none.
bool FastBf16Products() noexcept;

}  // namespace ringtail

#endif  // RINGTAIL_CORE_FAST_BF16_PRODUCTS_H_
