// SIGINT, SIGTERM and SIGUSR1 (a batch scheduler's warning) as a wish to stop: the handler only
// sets a flag; whoever works in steps looks at it between two of them. A second signal ends the
// process at once, with the same exit code. Thread-safety: any thread.
#ifndef RINGTAIL_APPS_STOP_SIGNAL_H_
#define RINGTAIL_APPS_STOP_SIGNAL_H_

namespace ringtail {

void InstallStopSignals();
int StopSignal();  // the signal that came first; 0: none so far
void SetStopSignalForTest(int signal);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_STOP_SIGNAL_H_
