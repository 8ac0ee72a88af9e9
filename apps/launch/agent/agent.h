// The agent: the launcher's process on each host, the launcher's own host included. It starts the
// ranks of its host, forwards their output and exit status to the launcher, and forwards signals
// to them (agent_messages.h).
//
// An agent starts the local ranks, too, because the launcher may be killed and its ranks must not
// outlive it. The agent then sees the end of its input, gives the ranks kWindUpSeconds to stop,
// and kills the rest. If the agent is killed, the kernel kills the ranks (run_rank.h), and the
// launcher adopts and kills the processes that they have started. Both adopt orphans
// (child_process.h), so that no descendant escapes by forking twice.
#ifndef RINGTAIL_APPS_LAUNCH_AGENT_AGENT_H_
#define RINGTAIL_APPS_LAUNCH_AGENT_AGENT_H_

namespace ringtail {

inline constexpr int kWindUpSeconds = 3;

// The verb "agent". Exchanges messages with the launcher over standard input and output until all
// ranks have ended. Returns the exit code.
int RunAgent();

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_AGENT_AGENT_H_
