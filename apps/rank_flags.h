// The flags that every program of several ranks has: which rank this process is (--rank,
// --local-rank, --master) and how ranks authenticate each other (--token-file, --tls-*,
// --insecure). Launchers and schedulers say the former by environment variables
// (dist/membership/identity).
#ifndef RINGTAIL_APPS_RANK_FLAGS_H_
#define RINGTAIL_APPS_RANK_FLAGS_H_

#include <optional>
#include <string>

#include "dist/membership/identity/rank_environment.h"
#include "dist/membership/security/security.h"

namespace CLI {
class App;
}

namespace ringtail {

// `group`: the heading of these flags in --help. Both pointers must outlive the parsing.
void AddRankFlags(CLI::App* app, const std::string& group, RankFlags* rank);

void AddSecurityFlags(CLI::App* app, const std::string& group, SecurityOptions* security,
                      std::optional<std::string>* token_file);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_RANK_FLAGS_H_
