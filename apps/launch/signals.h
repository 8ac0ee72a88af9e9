// Signals as something to be read, between other things, instead of handlers that interrupt.
// Thread-safety: none; for processes with one thread.
#ifndef RINGTAIL_APPS_LAUNCH_SIGNALS_H_
#define RINGTAIL_APPS_LAUNCH_SIGNALS_H_

#include <vector>

namespace ringtail {

// From now on `signals` wait in the file that is returned; SIGHUP stays ignored if it is (nohup).
// SIGPIPE is ignored: who writes sees the error.
int ReceiveSignals(const std::vector<int>& signals);

int NextSignal(int file);  // 0: none waits

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_SIGNALS_H_
