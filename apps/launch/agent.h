// The part of the launcher on each host, the launcher's own included: it starts the ranks of its
// host, passes on what they print and how they end, and hands signals to them (frames.h).
//
// Why not start local ranks directly? Because the launcher may be killed, and somebody must then
// clear up. An agent sees its input end, gives its ranks kWindUpSeconds to stop, and kills what is
// left. The agent, in turn, may be killed: then the kernel kills the ranks (run_rank.h), and the
// launcher adopts and kills what they have started. Both adopt orphans (child_process.h), so that
// no descendant gets away by forking twice.
#ifndef RINGTAIL_APPS_LAUNCH_AGENT_H_
#define RINGTAIL_APPS_LAUNCH_AGENT_H_

namespace ringtail {

inline constexpr int kWindUpSeconds = 3;

// The verb "agent": talks to the launcher over standard input and output until all ranks have ended.
int RunAgent();

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_AGENT_H_
