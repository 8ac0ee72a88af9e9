// Processor time in seconds: user and system time together, as the kernel accounts it.
// Thread-safety: functions without state. Cost: a system call.
#ifndef RINGTAIL_CORE_MACHINE_PROCESSOR_TIME_H_
#define RINGTAIL_CORE_MACHINE_PROCESSOR_TIME_H_

namespace ringtail {

double ProcessSeconds();  // of all threads of this process, ended ones included
double ThreadSeconds();   // of the calling thread

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_PROCESSOR_TIME_H_
