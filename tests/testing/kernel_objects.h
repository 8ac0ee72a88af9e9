// What the object files of kernels define, to hold core/kernel_isa.h's rule that a kernel source
// leaves nothing behind that another translation unit could define as well: of two copies the
// linker takes any, and the one compiled for AVX-512 would then run on machines that have none.
// Thread-safety: functions without state. Needs `nm`, which comes with the compiler.
#ifndef RINGTAIL_TESTS_TESTING_KERNEL_OBJECTS_H_
#define RINGTAIL_TESTS_TESTING_KERNEL_OBJECTS_H_

#include <string>
#include <vector>

namespace ringtail {

// "<file>: <symbol>" for every function or object that one of the object files of `library`
// ("ringtail_kernels") defines for the linker outside the namespace of its instruction set.
// `objects` counts the files.
std::vector<std::string> SymbolsOutsideTheirIsa(const std::string& binary_dir,
                                                const std::string& library, int* objects);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_TESTING_KERNEL_OBJECTS_H_
