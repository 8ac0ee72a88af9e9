// Signals that are read from a file descriptor between other events, instead of handlers that
// interrupt. // Thread-safety: none; for processes with one thread.
#ifndef RINGTAIL_APPS_LAUNCH_SIGNALS_H_
#define RINGTAIL_APPS_LAUNCH_SIGNALS_H_

#include <vector>

namespace ringtail {

// From now on `signals` can be read from the returned file; SIGHUP stays ignored if it is ignored
// now (nohup). SIGPIPE is ignored: writes return the error.
int ReceiveSignals(const std::vector<int>& signals);

int NextSignal(int file);  // 0: none is pending

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_SIGNALS_H_
